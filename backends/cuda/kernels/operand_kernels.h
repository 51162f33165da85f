// The steps of core/precision/device_rounding.h as kernels, bit-identical to core/precision/quantize.h. Cost: one read
// for the magnitudes, one read and one write for the elements. A tile along a row is assigned to a part of a warp, a
// tile along a column to one thread, a square to a block of threads, a whole matrix to all threads. Thread rule:
// asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "core/precision/device_rounding.h"

namespace ranklab {

cudaError_t launch_group_amax(const DeviceMatrix& matrix, float* amax, cudaStream_t stream);
cudaError_t launch_make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                               float* scales, cudaStream_t stream);
cudaError_t launch_round(const DeviceMatrix& matrix, const RoundingGrid& grid, const float* scales,
                         const DeviceNoise& noise, const DeviceRounded& out, cudaStream_t stream);
cudaError_t launch_hash_rows(const DeviceMatrix& matrix, uint64_t* numbers, cudaStream_t stream);

}  // namespace ranklab
