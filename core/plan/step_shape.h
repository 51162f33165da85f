// Everything that decides what one training step computes and moves: the model, the mesh, the batch and the gradient
// buckets. resolve()d plans give it (shape_of), and `ranklab topo` fills it for axes that the runtime does not run yet.
// Sizes are those of one rank: a tensor-parallel shard, a stage of the pipeline. Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <vector>

#include "core/comm/device_mesh.h"
#include "core/model/model_config.h"
#include "core/pipeline/schedule.h"
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
  bool clips = true;  // the gradient norm is above the limit, so that gradients are scaled
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  int chain_length = 0;                    // stages that a microbatch walks; 0: one a pipeline rank
  std::vector<int64_t> stage_layers = {};  // of each stage of a chain; empty: even, the first ones take the rest
  // A mixture of experts in place of every layer's MLP, when num_experts > 0 (planned: the runtime has none yet).
  int64_t num_experts = 0;
  int64_t router_topk = 2;

  int64_t element_bytes() const { return size_bytes(dtype); }
  bool sharded_sequence() const { return sequence_parallel && dims.tp > 1; }
  int64_t tokens() const { return micro_batch_size * model.seq_length / dims.cp; }  // of a microbatch, all tp positions
  int64_t local_tokens() const { return sharded_sequence() ? tokens() / dims.tp : tokens(); }
  // What a stage hands to the next one for a microbatch, and its gradient back.
  int64_t boundary_bytes() const { return local_tokens() * model.hidden_size * element_bytes(); }
  int64_t kv_width() const { return model.query_groups() * model.head_dim(); }
  int64_t qkv_width() const { return (model.hidden_size + 2 * kv_width()) / dims.tp; }
  int64_t up_width() const {
    return (model.activation == ActivationKind::kSwiGlu ? 2 : 1) * model.ffn_hidden_size / dims.tp;
  }
  int64_t ffn_width() const { return model.ffn_hidden_size / dims.tp; }
  int64_t vocab_width() const { return (model.vocab_size + dims.tp - 1) / dims.tp; }
  int64_t layers(int stage) const {
    if (!stage_layers.empty()) return stage_layers[static_cast<size_t>(stage)];
    return model.num_layers / num_stages() + (stage < model.num_layers % num_stages() ? 1 : 0);
  }
  int num_stages() const { return chain_length > 0 ? chain_length : dims.pp; }
  bool is_first(int stage) const { return stage == 0; }
  bool is_last(int stage) const { return stage == num_stages() - 1; }
};

StepShape shape_of(const RunPlan& plan);

// Where a parameter belongs in a backward pass; parameters are made in this order, layer by layer.
enum class ParameterPart { kEmbedding, kAttentionNorm, kQkv, kOut, kMlpNorm, kUp, kDown, kFinalNorm, kHead };

struct PlannedParameter {
  ParameterPart part = ParameterPart::kEmbedding;
  int64_t elements = 0;       // on this rank
  bool decay = true;          // a matrix, not a norm or a bias
  bool sum_over_tp = false;   // replicated over tp, and its gradient saw only this rank's positions
  bool is_expert = false;     // reduced over edp instead of dp
  bool token_matrix = false;  // the token embedding or the output head, which may be tied
  int local_stage = 0;        // among the rank's own stages
};

// In creation order, as the transformer makes them for this stage of a chain. A tied head is the embedding; on another
// stage it is a copy of it.
std::vector<PlannedParameter> planned_parameters(const StepShape& shape, int stage);
// ... on a rank of a pipeline, whose stages share a tied matrix that two of them have.
std::vector<PlannedParameter> planned_parameters(const StepShape& shape, const Schedule& schedule, int pp_rank);

struct PlannedBucket {
  int64_t elements = 0;  // each gradient padded to a cache line
  int64_t parameters = 0;
  bool sum_over_tp = false;
  bool is_expert = false;
};

// As GradReducer fills them: in reverse creation order, the tp-summed bucket last. `bucket_of` receives the bucket of
// every parameter.
std::vector<PlannedBucket> planned_buckets(const StepShape& shape, const std::vector<PlannedParameter>& parameters,
                                           std::vector<size_t>& bucket_of);

}  // namespace ranklab
