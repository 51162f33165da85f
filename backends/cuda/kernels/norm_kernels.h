// Kernels of (add +) RMSNorm of rows, and of heads within rows (norm_body.h): a block per long row, 8 or 32 lanes per
// short one. The gradient of the weight is summed by each block over its rows, then over blocks, always in the same
// order. Cost: one read and one write of each operand. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/norm_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_norm(const NormTask<T>& task, cudaStream_t stream);
// Recomputes `out` from x and inv_rms, which must have been computed already.
template <typename T>
cudaError_t launch_norm_recompute(const NormTask<T>& task, cudaStream_t stream);

template <typename T>
cudaError_t launch_norm_grad(const NormGradTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
