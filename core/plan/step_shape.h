// Everything that decides what one training step computes and moves: the model, the mesh, the batch and the gradient
// buckets. resolve()d plans give it (shape_of), and `ranklab topo` fills it for axes that the runtime does not run yet.
// Sizes are those of one rank: a tensor-parallel shard, a stage of the pipeline. Torch-free. Thread rule: immutable.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/device_mesh.h"
#include "core/model/model_config.h"
#include "core/model/recompute_policy.h"
#include "core/precision/tensor_precision.h"
#include "core/runtime/state_types.h"
#include "core/runtime/train_config.h"

namespace ranklab {

struct StepShape {
  ModelConfig model;
  ParallelDims dims;  // resolved
  bool sequence_parallel = false;
  int64_t micro_batch_size = 1;
  int64_t num_microbatches = 1;
  int64_t bucket_bytes = int64_t{25} << 20;
  DType dtype = DType::kFloat32;
  bool overlap_grad_reduce = true;
  int zero_stage = 0;  // RunPlan::zero_stage
  bool clips = true;   // the gradient norm is above the limit, so that gradients are scaled
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  std::optional<StateTypes> states = {};   // unset: the usual ones of `dtype`
  bool loss_scaled = false;                // gradients are looked through for overflows, and divided
  int chain_length = 0;                    // stages that a microbatch walks; 0: one a pipeline rank
  std::vector<int64_t> stage_layers = {};  // of each stage of a chain; empty: even, the first ones take the rest
  std::string moe_dispatcher = "alltoall";
  RecomputePolicy recompute = {};
  LinearPrecision products = {};                    // of linear layers
  bool head_quantized = false;                      // the head's, too
  TensorPrecision dispatch = {};                    // of tokens on their way to experts
  TensorPrecision gather = {};                      // of quantized weights that ranks share out
  std::vector<std::string> quantized_modules = {};  // of the whole model
  int ep_in_node = 0;  // members of an ep group that share a rank's node; 0: all (place_experts fills it)

  int64_t element_bytes() const { return size_bytes(dtype); }
  StateTypes state() const {
    return states.value_or(usual_state_types(dtype, optimizer == OptimizerKind::kAdamW ? 2 : 0));
  }
  bool sharded_sequence() const { return sequence_parallel && dims.tp > 1; }
  int64_t tokens() const { return micro_batch_size * model.seq_length / dims.cp; }  // of a microbatch, all tp positions
  int64_t local_tokens() const { return sharded_sequence() ? tokens() / dims.tp : tokens(); }
  // Token copies that arrive at a rank's experts when all experts get equally many, and that each etp rank brings.
  int64_t routed_tokens() const { return local_tokens() * model.moe.topk; }
  // What a stage hands to the next one for a microbatch, and its gradient back.
  // Numbers of the residual stream on this rank, and their bytes: what goes to the next stage.
  int64_t stream() const { return local_tokens() * model.hidden_size; }
  int64_t boundary_bytes() const { return stream() * element_bytes(); }
  int64_t heads() const { return model.num_attention_heads / dims.tp; }
  int64_t kv_heads() const { return std::max<int64_t>(model.query_groups() / dims.tp, 1); }
  int64_t query_width() const { return model.query_width() / dims.tp; }
  int64_t projected_qkv_width() const { return model.qkv_width() / dims.tp; }
  // With the key/value heads that other ranks projected in part.
  int64_t qkv_width() const { return query_width() + 2 * kv_heads() * model.head_dim(); }
  // Of an MLP whose hidden layer has `ffn` units on this rank.
  int64_t up_width(int64_t ffn) const { return (model.activation == ActivationKind::kSwiGlu ? 2 : 1) * ffn; }
  int64_t up_width() const { return up_width(ffn_width()); }
  int64_t ffn_width() const { return model.ffn_hidden_size / dims.tp; }
  int64_t shared_ffn_width() const { return model.moe.shared_ffn_hidden_size / dims.tp; }
  int64_t expert_ffn_width() const { return model.expert_ffn() / dims.etp; }
  int64_t local_experts() const { return model.moe.num_experts / dims.ep; }
  // Ranks that share out a gradient bucket and the optimizer's states behind it; 1: each has all of it.
  int shards(bool expert) const {
    if (zero_stage == 0) return 1;
    return (expert ? dims.edp : dims.dp * dims.cp) / dims.replicas;
  }
  // Over which a bucket is reduced, and with HSDP its shards once more.
  Axis reduced_over(bool expert) const {
    if (dims.replicas > 1 && shards(expert) > 1) return expert ? Axis::kEdpShard : Axis::kDpShard;
    if (expert) return Axis::kEdp;
    return dims.cp > 1 ? Axis::kDpCp : Axis::kDp;
  }
  int64_t ep_members_in_node() const { return ep_in_node > 0 ? ep_in_node : dims.ep; }
  int64_t vocab_width() const { return (model.vocab_size + dims.tp - 1) / dims.tp; }
  int64_t layers(int stage) const {
    if (!stage_layers.empty()) return stage_layers[static_cast<size_t>(stage)];
    return model.num_layers / num_stages() + (stage < model.num_layers % num_stages() ? 1 : 0);
  }
  int64_t first_layer(int stage) const {
    int64_t first = 0;
    for (int before = 0; before < stage; ++before) first += layers(before);
    return first;
  }
  int num_stages() const { return chain_length > 0 ? chain_length : dims.pp; }
  bool is_first(int stage) const { return stage == 0; }
  bool is_last(int stage) const { return stage == num_stages() - 1; }
  // Whether the last stage has the token embedding, too.
  bool embedding_at_both_ends() const { return model.tie_embeddings || model.mtp_num_layers > 0; }
};

StepShape shape_of(const RunPlan& plan);
// On nodes of this size.
void place_experts(StepShape& shape, const DeviceMesh& mesh, int gpus_per_node);

}  // namespace ranklab
