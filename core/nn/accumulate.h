// Adds a tensor to a sum that may have a wider type (gradients of microbatches in main_grads' type). Cost: one read of
// both and one write, also where 16 bits are added to fp32; LibTorch's kernels first make a copy in the wider type on a
// CPU, and process one number at a time on a GPU. Thread rule: pure except for `sum`.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

// sum += x; with `first`, sum = x. REQUIRES: both have the same shape.
void accumulate(const at::Tensor& sum, const at::Tensor& x, bool first);

}  // namespace ranklab
