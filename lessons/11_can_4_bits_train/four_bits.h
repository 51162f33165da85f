// The experiments of lesson 11: normal numbers in blocks of 4-bit formats, and a small training whose gradients are
// rounded. Torch-free. Cost: a tenth of a second. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/precision/quantization_error.h"
#include "core/precision/tensor_precision.h"

namespace ranklab::lesson {

std::vector<float> normal_numbers(int64_t count);

// Of normal numbers, in the recipe's blocks.
QuantizationError blocks_of_normals(const TensorPrecision& precision);

// Least squares with 16 unknowns by gradient descent; the gradient of every sample is rounded to a block of MXFP4.
// RETURNS: the distance to the solution over its length, after each tenth of the steps.
std::vector<double> descend(Rounding rounding, bool rounds);

}  // namespace ranklab::lesson
