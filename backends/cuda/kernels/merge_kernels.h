// The kernel of the softmax merge (merge_body.h): one warp per row. Cost: reads the new part once, reads and writes the
// result so far. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/merge_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_merge_softmax(const MergeTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
