// One transformer layer: attention followed by an MLP or a mixture of experts, or, in a hybrid model, just one of these
// or a state space. Each may have a norm before it, after it, or both. Where both branches read the same residual
// stream, their outputs are first added to each other. Legend: S positions (this rank's with sequence parallelism), B
// sequences, H hidden. Cost of a dense layer: 2 all_reduce (or all_gather + reduce_scatter) of [S, B, H] forward and 2
// backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/attention_layer.h"
#include "core/model/forward_context.h"
#include "core/model/mlp_layer.h"
#include "core/model/module_use.h"
#include "core/model/residual_stream.h"
#include "core/nn/norm.h"
#include "core/spec/layer_specs.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

class MaxLogitBook;
struct MoeContext;

struct BlockContext {
  int64_t layer = 0;  // its index in the model; MTP modules follow from num_layers on
  RopeTable rope;
  RopeTable local_rope = {};    // for sliding-window layers
  at::Tensor temperature = {};  // query temperatures in layers without rotary positions; undefined: none
  TensorParallel tp;
  ContextParallel cp = {};
  Communicator* kv = nullptr;                // AttentionContext::kv
  RecomputePolicy recompute = {};            // which parts of a layer are recomputed
  MoeContext* moe = nullptr;                 // REQUIRED for layers with experts; outlives the block
  const MaxLogitBook* max_logits = nullptr;  // attention raises its rows; null: logits are not recorded
};

class TransformerBlock {
 public:
  TransformerBlock(const ModuleScope& scope, const ModelConfig& config, const BlockContext& context);
  void forward(ResidualStream& stream, const ForwardContext& context) const;
  // Forward of the positions that follow those in the cache, without backward and dropout.
  void decode(ResidualStream& stream, const ForwardContext& context, AttentionCache& cache) const;
  const AttentionLayer* attention() const { return attention_.get(); }  // null: the layer has no attention
  // For recomputed(): all of its weights if other blocks have them, too; else empty.
  const std::vector<at::Tensor>& shared_weights() const { return shared_weights_; }

 private:
  TransformerBlock(const ModuleScope& scope, const ModelConfig& config, const BlockContext& context,
                   const BlockNormSpecs& norms);
  // Runs attention and MLP on the stream. Afterwards stream.x_SBH includes all earlier branches.
  template <typename Attend>
  void run(ResidualStream& stream, const ForwardContext& context, const Attend& attend) const;
  // What the MLP, with its post-norm, adds to the residual stream.
  at::Tensor mlp_branch(const NormOutput& from, const ForwardContext& context) const;
  // Applies norm and MLP to the stream; if `own_norm` is false, the stream is already normalized.
  void run_mlp(ResidualStream& stream, const ForwardContext& context, bool own_norm) const;
  // What a branch adds to the residual stream: its output, scaled and with dropout.
  at::Tensor residual_update(const at::Tensor& branch_SBH, const char* name, const ForwardContext& context) const;

  NormOutput norm_before(const std::optional<Norm>& norm, const ModuleUse& use, const ResidualStream& stream,
                         const ForwardContext& context) const;

  std::string name_;
  struct Uses {
    explicit Uses(const ModuleScope& scope);
    ModuleUse attention_norm, attention, attention_post_norm, mlp_norm, mlp, mlp_post_norm;
  };
  Uses uses_;
  ResidualForm residual_form_;
  double residual_multiplier_;
  bool recompute_mlp_;
  std::optional<Norm> attention_norm_;
  std::unique_ptr<AttentionLayer> attention_;  // null if the layer has none, as may be mlp_
  std::optional<Norm> attention_post_norm_;
  std::optional<Norm> mlp_norm_;
  std::unique_ptr<MlpLayer> mlp_;
  std::optional<Norm> mlp_post_norm_;
  std::vector<at::Tensor> shared_weights_;
};

}  // namespace ranklab
