// Attention sinks: one more score per head takes part in the softmax of each query, and has no value to give, so that a
// head may attend to nothing. Learned (gpt-oss, arXiv 2508.10925; Megatron-LM's --softmax-type learnable) or 0 ("off by
// one": exp(s) / (1 + sum of exp(s))). A kernel computes the softmax over keys alone; a sink then joins its results:
// out becomes out exp(lse) / (exp(lse) + exp(sink)), and lse the logarithm of that sum. Given these two, the backward
// of any kernel has the right gradients of queries, keys and values: it makes probabilities of scores by lse, and the
// sum of probabilities times their gradients by out, to which a sink adds nothing. Cost: one pass over the output;
// within the kernel on a GPU whose kernel knows sinks, so the virtual clock counts none. Thread rule: its rank's
// thread, where autograd does not record.
#pragma once
#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// To this thread's TypeWatch: a kernel, which it does not follow, made `results` of the queries.
void tell_made_of(const SoftmaxedHeads& results, const at::Tensor& queries);
// Changes `results` [B, heads, S, D] over all keys of S queries in place. sinks [heads] of any type.
void join_sinks(const SoftmaxedHeads& results, const at::Tensor& sinks);
// The gradient of the sinks, in their type. `forward`: the results after join_sinks().
at::Tensor sink_grad(const SoftmaxedHeads& forward, const at::Tensor& grad_out, const at::Tensor& sinks);
// softmax over the last dimension of scores [B, heads, S, keys] and a sink for each head, if `sinks` [heads] is
// defined: [B, heads, S, keys]. Differentiable.
at::Tensor softmax_with_sinks(const at::Tensor& scores, const at::Tensor& sinks);

}  // namespace ranklab
