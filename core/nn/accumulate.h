// Adds a tensor to a sum that may have a wider type (gradients of microbatches in main_grads' type). Cost: on a device
// with fused kernels, one read of both and one write, also where the types differ; LibTorch's kernels process operands
// of two different types one number at a time. Thread rule: pure except for `sum`.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

// sum += x; with `first`, sum = x. REQUIRES: both have the same shape.
void accumulate(const at::Tensor& sum, const at::Tensor& x, bool first);

}  // namespace ranklab
