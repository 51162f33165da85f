// Multi-tensor kernels: many tensors in few launches (lists_body.h). Cost: one read and one write of each operand, and
// one launch per kMostTensors tensors. Thread rule: asynchronous on `stream`; any thread.
#pragma once
#include <cuda_runtime_api.h>

#include <vector>

#include "backends/cuda/kernels/lists_body.h"

namespace ranklab::rows {

constexpr int kMostTensors = 48;  // what fits into the kernel arguments

inline int64_t chunks_of(int64_t count) { return (count + kChunk - 1) / kChunk; }

// *total += the sum of squares of all tensors, which have the same type. parts: [number of chunks], scratch.
cudaError_t launch_squares(const std::vector<SquaresTensor>& tensors, Kind kind, double* parts, double* total,
                           cudaStream_t stream);
// All tensors have the same types.
cudaError_t launch_adam(const std::vector<AdamTensor>& tensors, const AdamKinds& kinds, const AdamRule& rule,
                        cudaStream_t stream);

}  // namespace ranklab::rows
