// The one order in which numbers are added: a balanced binary tree over group rank. Members [lo, hi) are split at
// lo + (the largest power of two below hi - lo), each part is reduced by the same rule, and left + right is taken:
//   n = 4: (0+1)+(2+3)      n = 6: ((0+1)+(2+3))+(4+5)      n = 7: ((0+1)+(2+3))+((4+5)+6)
// The order depends on n only: not on timing, chunking, transport or size. So results repeat bit for bit, all_reduce
// equals all_gather(reduce_scatter), and a group of 8 adds as two groups of 4 do. Error bound log2(n) u instead of the
// sequential (n-1) u (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
// 16-bit inputs are added in fp32 and rounded once at the end unless `in_fp32` is false (then every partial sum is
// rounded). kAvg divides the sum by n before that rounding. Integers wrap around. min and max propagate NaN.
// Cost: every input is read once; scratch is a few KiB of stack. Thread rule: free functions, any thread; concurrent
// calls must not share output elements.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/base/vocabulary.h"

namespace ranklab {

struct Reduction {
  DType dtype = DType::kFloat32;  // fp32, fp64, bf16, fp16, int64, int32 or uint8
  ReduceOp op = ReduceOp::kSum;
  bool in_fp32 = true;
};

bool can_reduce(DType dtype, ReduceOp op);  // kAvg needs a floating type

// Writes the reduction of the inputs to every output. Each points at `count` elements; an output may be one of the
// inputs. REQUIRES: can_reduce; at least one input.
void tree_reduce(const Reduction& reduction, std::span<const void* const> inputs, std::span<void* const> outputs,
                 int64_t count);

// The definition, one element at a time. Tests check that tree_reduce equals it bit for bit.
void tree_reduce_reference(const Reduction& reduction, std::span<const void* const> inputs, void* output,
                           int64_t count);

}  // namespace ranklab
