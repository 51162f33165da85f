// The largest attention logit of each head of a model in one step (core/nn/attention/max_logit.h). Attention layers
// raise this rank's values; after the last microbatch the maximum is taken over ranks, which hold other heads (tp),
// other tokens (dp, cp), and other layers or another copy of the same layers (pp). Kept on the device until a step's
// metrics are read. Cost: an all_reduce of [layers, heads] over each of tp, dp with cp, and pp per step. Thread rule:
// its rank's thread; over_ranks() and end_step() are collective.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/spec/model_config.h"

namespace ranklab {

class MaxLogitBook {
 public:
  // `type`: the type of the model's parameters.
  MaxLogitBook(const ModelConfig& config, RankContext& context, at::ScalarType type);

  // The values that a layer raises: [heads of this tp rank], a view. Layers of multi-token prediction follow the
  // others.
  at::Tensor of_layer(int64_t layer) const;
  // [layers, heads] of the whole model; the first call in a step is collective.
  const at::Tensor& over_ranks();
  // The number of heads that were clipped because of their logits, as a tensor on the device.
  void note_clipped(at::Tensor heads) { clipped_ = std::move(heads); }
  // Fills in the report and starts over.
  void end_step(ModelReport& report);

 private:
  RankContext& context_;
  // of this rank; of all ranks, once the maximum was taken; number of clipped heads
  at::Tensor largest_, all_, clipped_;
};

}  // namespace ranklab
