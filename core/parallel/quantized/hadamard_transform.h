// The random Hadamard transform (core/precision/hadamard.h) of a tensor's rows, on the tensor's device. Cost: one pass
// on a CPU, six on others. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/precision/hadamard.h"

namespace ranklab {

// matrix [R, C] of any floating type -> fp32 [R', C], padded with rows of zeros to a multiple of 16.
at::Tensor hadamard_transform(const RandomHadamard& hadamard, const at::Tensor& matrix);

// The same with tensor operations, on any device; bitwise equal.
at::Tensor hadamard_transform_by_tensors(const RandomHadamard& hadamard, const at::Tensor& matrix);

}  // namespace ranklab
