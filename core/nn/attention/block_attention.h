// The softmax part of attention of a block of queries to a block of keys. Together with a merge over blocks
// (softmax_merge.h), ranks that hold the keys of different positions compute attention jointly (core/parallel/context).
// The fused kernels of softmax_attention.h compute full and triangular 16-bit blocks on a GPU, and all blocks on a CPU;
// plain ops compute other blocks, and scores with a cap or dropout. Legend: B batch, M queries, N keys, D head
// dimension. Cost: 4 M N D B heads FLOPs forward of a full block, 2.5 times that backward. Memory: on a CPU linear in M
// + N, except for bands: M N. Thread rule: its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

// The queries, keys and values that a block selects, as views.
SoftmaxHeads rows_of_block(const SoftmaxHeads& in, const AttentionBlock& block);
at::Tensor queries_of_block(const at::Tensor& x, const AttentionBlock& block);  // x [B, heads, M, ...]

// in.q [B, heads, M, D], in.k and in.v [B, groups, N, D] are whole runs, of which the block selects rows. `rule.window`
// is ignored, since the block determines it; so is `rule.sinks`, which are merged after all blocks. `kept` [B, heads,
// queries, keys] multiplies the block's probabilities (score_dropout.h); undefined: no dropout. RETURNS: the output of
// the block's queries and their log_sum_exp [B, heads, queries].
SoftmaxedHeads block_attention(const SoftmaxHeads& in, const AttentionBlock& block, const ScoreRule& rule,
                               const at::Tensor& kept = {});
// The type that these results have on the host. The virtual clock charges sums in this type on every device: with
// 16-bit inputs, a device's plain ops return fp32, but the host's fused kernel does not.
at::ScalarType charged_type(const at::Tensor& q, const ScoreRule& rule, const at::Tensor& kept = {});
// `forward`: the results of the run's queries over all keys of the sequence. RETURNS: the gradients of the block's
// rows.
SoftmaxHeads block_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                  const AttentionBlock& block, const ScoreRule& rule, const at::Tensor& kept = {});
// sum += part, with the virtual clock charged as if part had the type `charged`.
void add_part(const at::Tensor& sum, const at::Tensor& part, at::ScalarType charged);

}  // namespace ranklab
