// The experiments of lesson 11: normal numbers in blocks of 4-bit formats, and a small training run whose gradients are
// quantized. Torch-free. Cost: a tenth of a second. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/precision/quantization_error.h"
#include "core/precision/tensor_precision.h"

namespace ranklab::lesson {

std::vector<float> normal_numbers(int64_t count);

// Quantizes normal numbers in the recipe's blocks.
QuantizationError blocks_of_normals(const TensorPrecision& precision);

// Least squares with 16 unknowns by gradient descent; the gradient of every sample is quantized as a block of MXFP4.
// RETURNS: the relative distance to the solution, after each tenth of the steps.
std::vector<double> descend(Rounding rounding, bool rounds);

}  // namespace ranklab::lesson
