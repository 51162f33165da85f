// The softmax part of attention of a block of queries to a block of keys, and the merge of a query's results over
// several blocks of keys (online softmax: Milakov & Gimelshein 2018, arXiv 1805.02867; Dao 2022, arXiv 2205.14135).
// With it ranks that hold the keys of different positions attend together (core/parallel/context). Full and triangular
// blocks of 16 bits on a GPU, and all on a CPU, go through the fused kernels of softmax_attention.h; the rest, and
// scores with a cap or dropout, through plain ops. Legend: B batch, M queries, N keys, D head dimension. Cost: 4 M N D
// B heads FLOPs forward of a full block, 2.5 times that backward; on a CPU memory linear in M + N, except bands: M N.
// Thread rule: its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

// The queries and the keys and values that a block selects: views.
SoftmaxHeads rows_of_block(const SoftmaxHeads& in, const AttentionBlock& block);

// in.q [B, heads, M, D], in.k and in.v [B, groups, N, D]: whole runs, of which the block selects rows. `rule.window` is
// not read: the block has it. `kept` [B, heads, queries, keys] multiplies the block's probabilities (score_dropout.h);
// undefined: no dropout. RETURNS: the output of the block's queries and their log_sum_exp [B, heads, queries].
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

// The results of queries [B, heads, M, D] over the blocks added so far, in fp32 (fp64 for fp64). Queries that have seen
// no key have output 0 and log_sum_exp -infinity.
class SoftmaxMerge {
 public:
  SoftmaxMerge(const at::Tensor& q, int64_t value_dim);
  void add(const AttentionBlock& block, const SoftmaxedHeads& result, at::ScalarType charged);
  // A view of some sequences: adding to it adds to these results.
  SoftmaxMerge of_sequences(int64_t first, int64_t count) const;
  // In the type of q.
  SoftmaxedHeads result() const;

 private:
  SoftmaxMerge(at::ScalarType type, at::Tensor out, at::Tensor log_sum_exp);
  at::ScalarType type_;
  at::Tensor out_, log_sum_exp_;
};

}  // namespace ranklab
