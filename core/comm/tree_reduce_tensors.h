// The order of tree_reduce.h with elementwise kernels on whole tensors, on any device; the result has the same bits.
// Cost: n - 1 additions (for 16-bit inputs also one conversion each), and log2(n) tensors of scratch at a time. Thread
// rule: free functions, any thread; in the current stream.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/base/vocabulary.h"

namespace ranklab {

// All inputs have the same shape. 16-bit inputs are added in fp32 if `in_fp32`; the result has the inputs' dtype. A
// single input is returned as it is.
at::Tensor tree_reduce_tensors(const std::vector<at::Tensor>& inputs, ReduceOp op, bool in_fp32);

}  // namespace ranklab
