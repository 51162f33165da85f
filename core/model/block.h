// One transformer layer: attention, then an MLP or a mixture of experts; norms stand before either, behind it, or both.
// Where both branches see the same residual stream, they are added to each other first.
// Legend: S positions (this rank's with sequence parallelism), B sequences, H hidden. Cost of a dense layer: 2
// all_reduce (or all_gather + reduce_scatter) of [S, B, H] forward and 2 backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "core/model/attention_layer.h"
#include "core/model/forward_context.h"
#include "core/model/mlp_layer.h"
#include "core/model/residual_stream.h"
#include "core/nn/norm.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

struct MoePlace;

struct BlockPlace {
  int64_t layer = 0;  // its number in the model; MTP modules count on from num_layers
  RopeTable rope;
  RopeTable local_rope = {};  // of layers with a window
  TensorParallel tp;
  Communicator* kv = nullptr;    // AttentionPlace::kv
  bool attention_again = false;  // its inner part is computed again in backward (recompute_policy.h)
  MoePlace* moe = nullptr;       // REQUIRED for layers with experts; outlives the block
};

class TransformerBlock {
 public:
  TransformerBlock(const ModuleScope& scope, const ModelConfig& config, const BlockPlace& place);
  void forward(ResidualStream& stream, const ForwardContext& context) const;
  // The positions behind those in the cache; forward only, without dropout.
  void decode(ResidualStream& stream, const ForwardContext& context, AttentionCache& cache) const;
  const AttentionLayer& attention() const { return *attention_; }

 private:
  TransformerBlock(const ModuleScope& scope, const ModelConfig& config, const BlockPlace& place,
                   const BlockNormSpecs& norms);
  // What attention and MLP add to the stream, whose additions so far are in `stream`.x_SBH afterwards.
  template <typename Attend, typename Drop>
  void run(ResidualStream& stream, const ForwardContext& context, const Attend& attend, const Drop& drop) const;

  std::string name_;
  ResidualForm residual_form_;
  std::optional<Norm> attention_norm_;
  std::unique_ptr<AttentionLayer> attention_;
  std::optional<Norm> attention_post_norm_;
  std::optional<Norm> mlp_norm_;
  std::unique_ptr<MlpLayer> mlp_;
  std::optional<Norm> mlp_post_norm_;
};

}  // namespace ranklab
