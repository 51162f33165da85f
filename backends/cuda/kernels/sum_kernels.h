// The kernel that sums gradients (sum_body.h), a pack a thread. Cost: one read of the gradient and of the sum, unless
// it is the first, and one write. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/sum_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_accumulate(const SumTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
