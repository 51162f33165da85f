// The merge of a query's attention over several blocks of keys (online softmax: Milakov & Gimelshein 2018, arXiv
// 1805.02867; Dao 2022, arXiv 2205.14135): each block's result is weighted by its share of the sum of exponentials.
// Kernels merge in one pass; the reference does in plain ops. Cost: reads a block's results once, reads and writes the
// sums. Thread rule: its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

// Adds the results `part` of queries over more keys to `sums` of the same queries, both [B, heads, M, D] with
// log_sum_exp [B, heads, M]: sums in fp32 (fp64 for fp64), parts in that type or in 16 bits. Parts that saw no key have
// log_sum_exp -infinity and change nothing. `charged`: the type of parts that the virtual clock counts.
void merge_softmax(const SoftmaxedHeads& sums, const SoftmaxedHeads& part, at::ScalarType charged);
void merge_softmax_reference(const SoftmaxedHeads& sums, const SoftmaxedHeads& part);

// The results of queries [B, heads, M, D] over the blocks added so far, in fp32 (fp64 for fp64). Queries that have seen
// no key have output 0 and log_sum_exp -infinity.
class SoftmaxMerge {
 public:
  SoftmaxMerge(const at::Tensor& q, int64_t value_dim);
  void add(const AttentionBlock& block, const SoftmaxedHeads& result, at::ScalarType charged);
  void add_sinks(const at::Tensor& sinks);  // [heads]; once, when all blocks are added
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
