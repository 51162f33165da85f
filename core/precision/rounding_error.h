// What rounding a matrix in groups loses (quantization_error.h), with scales from the groups' own largest magnitudes.
// Torch-free. Cost: a few passes, a copy of the matrix. Thread rule: pure.
#pragma once
#include "core/precision/quantization_error.h"
#include "core/precision/quantize.h"

namespace ranklab {

// To nearest, whatever precision.rounding says. Groups along rows of the matrix; those that hold a number that is not
// finite are left out. Saturated are numbers beyond the largest times their scale.
QuantizationError measure_rounding(const MatrixView& x, const TensorPrecision& precision);

}  // namespace ranklab
