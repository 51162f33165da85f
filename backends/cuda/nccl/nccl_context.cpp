#include "backends/cuda/nccl/nccl_context.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <utility>

#include "backends/cuda/nccl/nccl_comm.h"
#include "core/base/thread_stack.h"

namespace ranklab {
namespace {

// Prints where the rank's thread is, since it does not return, then the error in the format of the command line, and
// exits.
void leave(const Error& error, const std::string& who, pthread_t rank) {
  report_where_thread_is(who, rank);
  std::fprintf(stderr, "ranklab: error: %s\n", error.what());
  std::fflush(stderr);  // not stdout, whose lock another thread may hold forever
  ::_exit(exit_code(error.kind()));
}

HeartbeatOptions heartbeat_options(const CudaWorldOptions& options) {
  HeartbeatOptions out;
  // A user who disables the limit may hold ranks in a debugger.
  if (options.hang_timeout.count() == 0) out.silence = std::chrono::milliseconds(0);
  return out;
}

WatchdogOptions watchdog_options(Rendezvous& rendezvous, const CudaWorldOptions& options, c10::Device device) {
  WatchdogOptions out;
  out.where = rendezvous.where();
  out.hang_timeout = options.hang_timeout;
  out.host_timeout = wait_limit(options);
  out.on_thread_start = [index = device.index()] { cudaSetDevice(index); };
  if (rendezvous.world_size() > 1)
    out.silent_ranks = [&rendezvous, heart = heartbeat_options(options)] { return silent_ranks(rendezvous, heart); };
  out.abort_all = [](const std::vector<WatchedComm*>& comms) { NcclComm::abort_together(comms); };
  out.leave = [who = out.where, rank = ::pthread_self(), on_stuck = options.on_stuck](const Error& error) {
    if (on_stuck) on_stuck(error);
    leave(error, who, rank);
  };
  return out;
}

}  // namespace

NcclContext::NcclContext(Rendezvous& its_rendezvous, const CudaWorldOptions& its_options, c10::Device its_device,
                         std::string its_gpu)
    : rendezvous(its_rendezvous),
      options(its_options),
      device(its_device),
      gpu(std::move(its_gpu)),
      clock(its_device),
      watchdog(failure, watchdog_options(its_rendezvous, its_options, its_device)),
      heartbeat(its_rendezvous, failure, heartbeat_options(its_options)) {}

}  // namespace ranklab
