// Rounding to FP8 codes with one scale per 128 numbers of a row, of a column, or per square of 128 x 128, in one pass:
// a block of threads processes a square of the matrix, computes the scales of its groups and writes the codes.
// Bit-identical to group_amax(), make_scales() and round() of core/precision/device_rounding.h in sequence. Cost: one
// read of the matrix, one write of a byte per element. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "core/precision/device_rounding.h"

namespace ranklab {

// REQUIRES: takes_at_once() of cast_body.h.
cudaError_t launch_cast_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker,
                                bool along_columns_first, float* scales, const DeviceRounded& out, cudaStream_t stream);

}  // namespace ranklab
