// Quantizes a matrix on a GPU: codes and scales, dequantized values, or both, in one pass if groups need no scale of
// the whole tensor. Tiles (1 x 16, 1 x 32, 1 x 128) are assigned to parts of a warp, squares and whole rows to a block
// of threads. Bit-identical to core/precision/quantize.h; rounds to nearest. Cost: one read, one write; a second read
// for tensor_amax. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/quantize_body.h"

namespace ranklab {

// *amax = the largest magnitude of the task's x, or NaN if x contains one. Reads nothing else of the task.
cudaError_t launch_tensor_amax(const QuantizeTask<float>& task, float* amax, cudaStream_t stream);
cudaError_t launch_tensor_amax(const QuantizeTask<Bf16Bits>& task, float* amax, cudaStream_t stream);

// REQUIRES: for kE4M3, task.tensor_amax or maker.whole.
cudaError_t launch_quantize(const QuantizeTask<float>& task, cudaStream_t stream);
cudaError_t launch_quantize(const QuantizeTask<Bf16Bits>& task, cudaStream_t stream);
// One scale for the whole matrix, from *task.tensor_amax; task.height and width are rows and cols.
cudaError_t launch_quantize_tensor(const QuantizeTask<float>& task, cudaStream_t stream);
cudaError_t launch_quantize_tensor(const QuantizeTask<Bf16Bits>& task, cudaStream_t stream);

}  // namespace ranklab
