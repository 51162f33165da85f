// The GPU as rank threads share it (core/comm/device_queues.h): a queue is a stream of LibTorch's pool, a mark an
// event. A rank's tensors come from the pool of its own stream, so that memory freed and taken again within a rank
// needs no event. Cost: an event a post and a call, reused; two streams a rank (LibTorch has 32 of each priority, then
// ranks share them). Thread rule: as device_queues.h.
#pragma once
#include <memory>

#include "core/comm/device_queues.h"

namespace ranklab {

// Of the current device. REQUIRES: cuda_device_usable.
std::unique_ptr<DeviceQueues> make_stream_queues();

// From now on `taken` is told of every block of GPU memory that becomes a tensor's and `given` of every one that is
// given back, on the thread that does it. They must not use LibTorch. Once in a process.
void watch_gpu_memory(void (*taken)(const void* block, int64_t bytes), void (*given)(const void* block));

}  // namespace ranklab
