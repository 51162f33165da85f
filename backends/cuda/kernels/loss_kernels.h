// Kernels of cross entropy (loss_body.h): a block a row. Cost: logits are read once forward, and read and their
// gradient written once backward. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/loss_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_loss_statistics(const LossTask<T>& task, cudaStream_t stream);
template <typename T>
cudaError_t launch_loss_grad(const LossTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
