// The GPU as shared by rank threads (core/comm/device_queues.h): a queue is a stream of LibTorch's pool, a mark is an
// event. A rank's tensors are allocated for its own stream, so memory that is freed and reallocated within a rank needs
// no event. Cost: an event per post and per call, reused; two streams per rank (LibTorch has 32 of each priority; with
// more ranks, several share a stream). Thread rule: as device_queues.h.
#pragma once
#include <memory>

#include "core/comm/device_queues.h"

namespace ranklab {

// For the current device. REQUIRES: cuda_device_usable.
std::unique_ptr<DeviceQueues> make_stream_queues();

// From now on `taken` is called for every block of GPU memory that a tensor acquires, and `given` for every one that it
// releases, on the thread that does it. They must not use LibTorch. Call once per process.
void watch_gpu_memory(void (*taken)(const void* block, int64_t bytes), void (*given)(const void* block));

}  // namespace ranklab
