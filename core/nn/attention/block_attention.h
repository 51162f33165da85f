// The softmax part of attention of a block of queries to a block of keys: with it, and a merge over blocks
// (softmax_merge.h), ranks that hold the keys of different positions attend together (core/parallel/context). Full and
// triangular blocks of 16 bits on a GPU, and all on a CPU, go through the fused kernels of softmax_attention.h; the
// rest, and scores with a cap or dropout, through plain ops. Legend: B batch, M queries, N keys, D head dimension.
// Cost: 4 M N D B heads FLOPs forward of a full block, 2.5 times that backward; on a CPU memory linear in M + N, except
// bands: M N. Thread rule: its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

// The queries and the keys and values that a block selects: views.
SoftmaxHeads rows_of_block(const SoftmaxHeads& in, const AttentionBlock& block);
at::Tensor queries_of_block(const at::Tensor& x, const AttentionBlock& block);  // x [B, heads, M, ...]

// in.q [B, heads, M, D], in.k and in.v [B, groups, N, D]: whole runs, of which the block selects rows. `rule.window` is
// not read: the block has it; nor `rule.sinks`, which join when all blocks are merged. `kept` [B, heads, queries, keys]
// multiplies the block's probabilities (score_dropout.h); undefined: no dropout. RETURNS: the output of the block's
// queries and their log_sum_exp [B, heads, queries].
SoftmaxedHeads block_attention(const SoftmaxHeads& in, const AttentionBlock& block, const ScoreRule& rule,
                               const at::Tensor& kept = {});
// The type of these results on the host, as the virtual clock counts their sums on any device: in 16 bits a device's
// plain ops hand on fp32, the host's fused kernel does not.
at::ScalarType charged_type(const at::Tensor& q, const ScoreRule& rule, const at::Tensor& kept = {});
// `forward`: the results of the run's queries over all keys of the sequence. RETURNS: gradients of the block's rows.
SoftmaxHeads block_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                  const AttentionBlock& block, const ScoreRule& rule, const at::Tensor& kept = {});
// sum += part, charged as for a part of this type.
void add_part(const at::Tensor& sum, const at::Tensor& part, at::ScalarType charged);

}  // namespace ranklab
