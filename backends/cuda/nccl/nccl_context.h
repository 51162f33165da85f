// State shared by the communicators of one run: the GPU, the rendezvous with the other processes, and the threads that
// supervise the calls in flight. Outlives every communicator and work of the run. Thread rule: its rank's thread; see
// also the members.
#pragma once
#include <c10/core/Device.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/nccl/device_clock.h"
#include "backends/cuda/nccl/failure.h"
#include "backends/cuda/nccl/heartbeat.h"
#include "backends/cuda/nccl/rendezvous.h"
#include "backends/cuda/nccl/watchdog.h"

namespace ranklab {

// How long a rank waits for another one on the host: at the start, and at a group's first call. 0: no limit.
inline std::chrono::milliseconds wait_limit(const CudaWorldOptions& options) {
  if (options.hang_timeout.count() == 0) return options.hang_timeout;
  return std::max(options.hang_timeout, options.rendezvous_timeout);
}

struct NcclContext {
  // `gpu`: identifies the GPU across all hosts.
  NcclContext(Rendezvous& its_rendezvous, const CudaWorldOptions& its_options, c10::Device its_device, std::string gpu);

  Rendezvous& rendezvous;
  CudaWorldOptions options;
  c10::Device device;
  std::string gpu;
  DeviceClock clock;
  Failure failure;
  Watchdog watchdog;
  Heartbeat heartbeat;
};
using NcclContextPtr = std::shared_ptr<NcclContext>;

}  // namespace ranklab
