// Attention sinks: the softmax of each query includes one more score per head, which has no value, so that a head may
// attend to nothing. The score is learned (gpt-oss, arXiv 2508.10925; Megatron-LM's --softmax-type learnable) or 0
// ("off by one": exp(s) / (1 + sum of exp(s))). A kernel computes the softmax over the keys alone, and the sink is
// merged into its results afterwards: out becomes out exp(lse) / (exp(lse) + exp(sink)), and lse becomes the logarithm
// of that denominator. Given these two, the backward of any kernel gives the right gradients of queries, keys and
// values: it computes probabilities from scores and lse, and the sum of probabilities times their gradients from out,
// to which a sink contributes nothing. Cost: one pass over the output; on a GPU whose kernel supports sinks this
// happens inside the kernel, so the virtual clock charges nothing. Thread rule: its rank's thread, where autograd does
// not record.
#pragma once
#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// Tells this thread's TypeWatch that `results` were computed from the queries by a kernel, which it cannot follow.
void report_kernel_results(const SoftmaxedHeads& results, const at::Tensor& queries);
// Merges the sinks into `results` [B, heads, S, D], computed over all keys of S queries, in place. sinks [heads], of
// any type.
void join_sinks(const SoftmaxedHeads& results, const at::Tensor& sinks);
// The gradient of the sinks, in their type. `forward`: the results after join_sinks().
at::Tensor sink_grad(const SoftmaxedHeads& forward, const at::Tensor& grad_out, const at::Tensor& sinks);
// Softmax over the last dimension of scores [B, heads, S, keys], together with a sink per head if `sinks` [heads] is
// defined; returns the keys' probabilities [B, heads, S, keys]. Differentiable.
at::Tensor softmax_with_sinks(const at::Tensor& scores, const at::Tensor& sinks);

}  // namespace ranklab
