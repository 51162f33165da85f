// The error of rounding a matrix in groups (quantization_error.h), with scales from the groups' own amax. Torch-free.
// Cost: a few passes, a copy of the matrix. Thread rule: pure.
#pragma once
#include "core/precision/quantization_error.h"
#include "core/precision/quantize.h"

namespace ranklab {

// Rounds to nearest, whatever precision.rounding says, with groups along the matrix's rows; groups with a non-finite
// number are left out. A number is saturated if it is beyond the format's largest times the scale.
QuantizationError measure_rounding(const MatrixView& x, const TensorPrecision& precision);

}  // namespace ranklab
