// Merges a query's attention over several blocks of keys (online softmax: Milakov & Gimelshein 2018, arXiv 1805.02867;
// Dao 2022, arXiv 2205.14135): each block's result is weighted by its share of the sum of exponentials. Kernels do this
// in one pass, the reference in plain ops. Cost: reads a block's results once, reads and writes the sums. Thread rule:
// its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

// Merges `part`, the results of queries over further keys, into `sums`, the results of the same queries so far; both
// are [B, heads, M, D] with log_sum_exp [B, heads, M]. Sums are in fp32 (fp64 for fp64), parts in that type or in 16
// bits. Queries without keys in `part` have log_sum_exp -infinity there and do not change. `charged`: the type of parts
// for which the virtual clock is charged.
void merge_softmax(const SoftmaxedHeads& sums, const SoftmaxedHeads& part, at::ScalarType charged);
void merge_softmax_reference(const SoftmaxedHeads& sums, const SoftmaxedHeads& part);

// The results of queries [B, heads, M, D] over the blocks added so far, in fp32 (fp64 for fp64). Queries that have seen
// no key have output 0 and log_sum_exp -infinity.
class SoftmaxMerge {
 public:
  SoftmaxMerge(const at::Tensor& q, int64_t value_dim);
  void add(const AttentionBlock& block, const SoftmaxedHeads& result, at::ScalarType charged);
  void add_sinks(const at::Tensor& sinks);  // [heads]; call once, after all blocks were added
  // A view of some sequences; adding to the view adds to these results.
  SoftmaxMerge of_sequences(int64_t first, int64_t count) const;
  // The results in the type of q.
  SoftmaxedHeads result() const;

 private:
  SoftmaxMerge(at::ScalarType type, at::Tensor out, at::Tensor log_sum_exp);
  at::ScalarType type_;
  at::Tensor out_, log_sum_exp_;
};

}  // namespace ranklab
