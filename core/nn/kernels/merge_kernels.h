// The loop of softmax_merge.h: merges the attention of queries to further keys into their results so far, in one pass.
// 16-bit results are widened to fp32, in which the sums are kept. Torch-free. Cost: reads both and writes the sums.
// Thread rule: pure functions.
#pragma once
#include <cstdint>

#include "core/nn/kernels/row_kernels_16bit.h"

namespace ranklab::kernels {

struct MergeShape {
  int64_t batch = 0, heads = 0, rows = 0, head_dim = 0;
};
// Strides of tensors [batch, heads, rows] and [batch, heads, rows, head_dim] whose last dimension is dense.
struct MergeStrides {
  HeadStrides out, log_sum_exp, part, part_log_sum_exp;
};

// For elements of type T and sums of type Wide:
//   both = log(exp(log_sum_exp) + exp(part_log_sum_exp))
//   out = exp(log_sum_exp - both) out + exp(part_log_sum_exp - both) part;  log_sum_exp = both
// Where part_log_sum_exp is -infinity (the query attends to no key of the part), nothing changes.
#define RANKLAB_MERGE_KERNEL(T, Wide)                                                                            \
  void merge_softmax(MergeShape shape, const MergeStrides& strides, const T* part, const Wide* part_log_sum_exp, \
                     Wide* out, Wide* log_sum_exp);
RANKLAB_MERGE_KERNEL(float, float)
RANKLAB_MERGE_KERNEL(double, double)
RANKLAB_MERGE_KERNEL(Bf16, float)
RANKLAB_MERGE_KERNEL(Fp16, float)
#undef RANKLAB_MERGE_KERNEL

}  // namespace ranklab::kernels
