// What the stand-in for CUDA's runtime adds to the functions of <cuda_runtime_api.h>. It claims kDevices GPUs, whose
// memory is their own (device_memory.h). It knows the functions that LibTorch's c10_cuda, its events and our NCCL
// backend call; others go to the real runtime, which finds no driver and says so. Kernels cannot be launched:
// host_tensors.h has the operators that tests need. Thread rule: as CUDA's.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <utility>

#include "tests/cuda/stand_in/queues.h"

namespace ranklab::stand_in {

constexpr int kDevices = 8;

// The queue behind a handle; null is the current device's default stream.
Stream& stream_of(cudaStream_t handle);

// Graphs that were recorded, or made to be launched, and not destroyed.
int live_graphs();
// The next launch of a graph fails.
void fail_next_graph_launch();

// Adds work to a stream, as a kernel's launch does.
inline void launch(cudaStream_t stream, std::function<void()> work) { stream_of(stream).add(std::move(work)); }

}  // namespace ranklab::stand_in
