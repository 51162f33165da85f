// The softmax part of causal attention in plain ops on tiles of queries, on any device, computed in fp32 for 16-bit
// tensors. Needed for soft-capped scores, cap tanh(score / cap) before masking (Gemma 2, arXiv 2408.00118, section 2),
// which ATen's fused kernels do not support, and for sinks (attention_sinks.h) where no kernel returns the log-sum-exp.
// Backward recomputes the scores of a tile, as flash attention does. Memory: linear in S, plus the scores of 128
// queries. Cost: as in attention.h, plus on average 64 masked keys per query. Thread rule: its rank's thread, where
// autograd does not record.
#pragma once
#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// Like softmax_attention(), but without sinks, and with as many key/value heads as query heads.
SoftmaxedHeads tiled_attention(const SoftmaxHeads& in, const ScoreRule& rule);
SoftmaxHeads tiled_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                  const ScoreRule& rule);

}  // namespace ranklab
