// The largest attention logit of each head of a model in one step (core/nn/attention/max_logit.h): attention layers
// raise this rank's, and after the last microbatch ranks take the largest of all: those of other heads (tp), of other
// tokens (dp, cp) and of other layers or of the same in another copy (pp). Kept on the device until a step's metrics
// are read. Cost: an all_reduce of [layers, heads] over each of tp, dp with cp, and pp per step. Thread rule: its
// rank's thread; over_ranks() and end_step() are collective.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/spec/model_config.h"

namespace ranklab {

class MaxLogitBook {
 public:
  // `type`: of the model's parameters.
  MaxLogitBook(const ModelConfig& config, RankContext& context, at::ScalarType type);

  // What a layer raises: [heads of this tp rank], a view. Layers of multi-token prediction follow the others.
  at::Tensor of_layer(int64_t layer) const;
  // [layers, heads] of the whole model; a collective at the first call in a step.
  const at::Tensor& over_ranks();
  // How many heads were clipped because of them, a number on the device.
  void note_clipped(at::Tensor heads) { clipped_ = std::move(heads); }
  // Fills in the report and begins anew.
  void end_step(ModelReport& report);

 private:
  RankContext& context_;
  at::Tensor largest_, all_, clipped_;  // of this rank; of all ranks, once they met
};

}  // namespace ranklab
