// Cross entropy kernels (loss_body.h): one block per row. Cost: forward reads the logits once; backward reads them and
// writes their gradient once. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/loss_body.h"

namespace ranklab::rows {

template <typename T>
cudaError_t launch_loss_statistics(const LossTask<T>& task, cudaStream_t stream);
template <typename T>
cudaError_t launch_loss_grad(const LossTask<T>& task, cudaStream_t stream);

}  // namespace ranklab::rows
