// The softmax part of causal attention whose scores are bounded, cap tanh(score / cap), before they are masked (Gemma
// 2, arXiv 2408.00118, section 2), which fused kernels of ATen have not: in blocks of queries, in plain operators, on
// any device, computed in fp32 for 16 bits. Backward computes the scores of a block again, as flash attention does.
// Memory: linear in S, beside the scores of 128 queries. Cost: as attention.h, and for each query half of a block of
// 128 keys behind the mask. Thread rule: its rank's thread, where autograd does not record.
#pragma once
#include "core/nn/softmax_attention.h"

namespace ranklab {

// As softmax_attention(), but as many heads of keys and values as of queries. REQUIRES: rule.cap > 0.
SoftmaxedHeads capped_attention(const SoftmaxHeads& in, const ScoreRule& rule);
SoftmaxHeads capped_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                   const ScoreRule& rule);

}  // namespace ranklab
