// The kernel that sums gradients (sum_body.h), one pack per thread. Cost: one read of the gradient and one of the sum,
// except for the first gradient, and one write. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/sum_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_accumulate(const SumTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
