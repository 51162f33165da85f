// Kernels of SwiGLU (swiglu_body.h), one pack per thread. Cost: one read and one write of each operand. Thread rule:
// asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/swiglu_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_swiglu(const SwigluTask<T>& task, cudaStream_t stream);
template <typename T>
cudaError_t launch_swiglu_grad(const SwigluTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
