// From the state behind the final norm to logits: the head's matrix, which is the token embedding's where they are
// tied, with its rows of the vocabulary cut over tp, and a bias or none ("head.bias"). Logits may be bounded, cap
// tanh(logit / cap) (Gemma 2, arXiv 2408.00118, section 2). Legend: S positions, B sequences, V_local rows of this
// rank. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/model/forward_context.h"
#include "core/nn/norm.h"
#include "core/parallel/linear.h"
#include "core/spec/model_config.h"

namespace ranklab {

class OutputHead {
 public:
  // `tied`: the embedding's weight, used instead of an own one; null: "head.weight" is made.
  OutputHead(const ModuleScope& scope, const ModelConfig& config, const Parameter* tied, TensorParallel tp);

  // The sum of the token losses, or the logits of all tokens [B, S, V] without padding: what the context asks for, the
  // same on every tp rank.
  at::Tensor predict(const NormOutput& state, const ForwardContext& context) const;

  // -> [S, B, V_local]: of all positions.
  at::Tensor operator()(const NormOutput& state, const TokenPlace& tokens) const;
  // Which rows of the vocabulary these are.
  const Partition& partition() const { return weight_->partition; }

 private:
  at::Tensor loss_sum(const at::Tensor& logits_SBV, const at::Tensor& targets_BS) const;
  at::Tensor all_logits(const at::Tensor& logits_SBV, int64_t tokens) const;

  const Parameter* weight_;
  const Parameter* bias_;       // null: none
  LinearQuantizer* quantizer_;  // null: none
  TensorParallel tp_;
  int64_t vocab_size_;
  double cap_;
};

}  // namespace ranklab
