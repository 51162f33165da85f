// The softmax part of causal attention in plain operators on tiles of queries, on any device, in fp32 for 16-bit
// tensors: for scores that are bounded, cap tanh(score / cap), before they are masked (Gemma 2, arXiv 2408.00118,
// section 2), which ATen's fused kernels do not support, and for sinks (attention_sinks.h) where no kernel gives the
// log-sum-exp. Backward recomputes the scores of a tile, as flash attention does. Memory: linear in S, plus the scores
// of 128 queries. Cost: as attention.h, plus on average 64 masked keys per query. Thread rule: its rank's thread, where
// autograd does not record.
#pragma once
#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// As softmax_attention(), but keys and values have as many heads as queries, and sinks do not join.
SoftmaxedHeads tiled_attention(const SoftmaxHeads& in, const ScoreRule& rule);
SoftmaxHeads tiled_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                  const ScoreRule& rule);

}  // namespace ranklab
