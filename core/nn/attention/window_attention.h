// The softmax part of sliding-window attention on a CPU: each query attends to the last `window` positions, including
// its own (Mistral, arXiv 2310.06825, section 2; before it Longformer, arXiv 2004.05150). Each block of queries, with
// the keys to which any of its queries attends, goes through ATen's flash attention with a mask. Internal to core/nn.
// Cost: memory linear in S; S (window + block) scores per head, where block is the larger of the window and 128. Thread
// rule: its rank's thread, where autograd does not record.
#pragma once
#include <optional>

#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// Like softmax_attention(), but with as many key/value heads as query heads.
SoftmaxedHeads window_attention(const SoftmaxHeads& in, int64_t window, std::optional<double> scale);
SoftmaxHeads window_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                   int64_t window, std::optional<double> scale);

// [queries, keys]: true where the query at position first_query + i attends to the key at position first_key + j.
at::Tensor window_mask(int64_t first_query, int64_t queries, int64_t first_key, int64_t keys, int64_t window,
                       c10::Device device);

}  // namespace ranklab
