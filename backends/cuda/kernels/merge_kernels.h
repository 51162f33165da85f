// Kernel of the softmax merge (merge_body.h), a warp a row. Cost: reads a part once, reads and writes the sums. Thread
// rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/merge_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_merge_softmax(const MergeTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
