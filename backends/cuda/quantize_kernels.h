// Rounds a matrix on a GPU to few bits: codes and scales, what is read back, or both, in one pass where groups need no
// scale of the whole tensor. Tiles (1 x 16, 1 x 32, 1 x 128) go to parts of a warp, squares and whole rows to a block
// of threads. Bits are those of core/precision/quantize.h; rounding is to nearest. Cost: one read, one write; a second
// read for tensor_amax. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/quantize_body.h"

namespace ranklab {

// *amax = the largest magnitude, NaN where there is one. Of the task's x alone.
cudaError_t launch_tensor_amax(const QuantizeTask<float>& task, float* amax, cudaStream_t stream);
cudaError_t launch_tensor_amax(const QuantizeTask<Bf16Bits>& task, float* amax, cudaStream_t stream);

// REQUIRES: of kE4M3 task.tensor_amax or maker.whole.
cudaError_t launch_quantize(const QuantizeTask<float>& task, cudaStream_t stream);
cudaError_t launch_quantize(const QuantizeTask<Bf16Bits>& task, cudaStream_t stream);
// One scale for the whole matrix, from *task.tensor_amax; task.height and width are rows and cols.
cudaError_t launch_quantize_tensor(const QuantizeTask<float>& task, cudaStream_t stream);
cudaError_t launch_quantize_tensor(const QuantizeTask<Bf16Bits>& task, cudaStream_t stream);

}  // namespace ranklab
