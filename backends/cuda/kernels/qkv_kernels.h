// Kernels that split a fused projection into rotated heads and merge gradients of heads again (qkv_body.h). Cost: one
// read and one write of each operand. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/qkv_body.h"

namespace ranklab::rows {

// From qkv (read only) into q, k and v.
template <typename T>
cudaError_t launch_split_qkv(const QkvTask<T>& task, cudaStream_t stream);
// From q, k and v (read only) into qkv.
template <typename T>
cudaError_t launch_merge_qkv(const QkvTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
