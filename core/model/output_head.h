// Computes logits from the hidden state after the final norm: the head's matrix (the token embedding's when tied),
// sharded over tp by rows of the vocabulary, and an optional bias ("head.bias"). Logits may be soft-capped, cap
// tanh(logit / cap) (Gemma 2, arXiv 2408.00118, section 2). Legend: S positions, B sequences, V_local rows of this
// rank. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/model/forward_context.h"
#include "core/nn/norm.h"
#include "core/parallel/tensor/linear.h"
#include "core/spec/model_config.h"

namespace ranklab {

class OutputHead {
 public:
  // `tied`: the embedding's weight, used for the head; null: creates "head.weight".
  OutputHead(const ModuleScope& scope, const ModelConfig& config, const Parameter* tied, TensorParallel tp);

  // Depending on context.result, the sum of the token losses or the logits of all tokens [B, S, V] without padding; the
  // same on every tp rank.
  at::Tensor predict(const NormOutput& state, const ForwardContext& context) const;

  // Logits [S, B, V_local] of all positions.
  at::Tensor operator()(const NormOutput& state, const TokenContext& tokens) const;
  // The sum of the token losses for such logits.
  at::Tensor loss_sum(const at::Tensor& logits_SBV, const at::Tensor& targets_BS) const;

 private:
  at::Tensor all_logits(const at::Tensor& logits_SBV, int64_t tokens) const;

  const Parameter* weight_;
  const Parameter* bias_;       // null: none
  LinearQuantizer* quantizer_;  // null: none
  TensorParallel tp_;
  int64_t vocab_size_;
  double scale_;
  double cap_;
};

}  // namespace ranklab
