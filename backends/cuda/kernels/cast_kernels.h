// round() of core/precision/device_rounding.h for 8-bit codes, in packs of 16 bytes, also transposed: the form that FP8
// matrix products read. Cost: one read of the matrix and one write of a byte per element. Thread rule: asynchronous on
// `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "core/precision/device_rounding.h"

namespace ranklab {

// REQUIRES: casts() of cast_body.h.
cudaError_t launch_cast(const DeviceMatrix& matrix, const RoundingGrid& grid, const float* scales,
                        const DeviceRounded& out, cudaStream_t stream);

}  // namespace ranklab
