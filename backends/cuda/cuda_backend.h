// The public interface of the CUDA backend: one process per GPU, NCCL between them; or simulated ranks that share this
// process's GPU (backends/cpu_sim/thread_world.h). Everything that needs CUDA is in the module libranklab_cuda.so
// (CMake option RANKLAB_WITH_CUDA), which is opened at run time on demand, so that one binary serves machines with and
// without CUDA. The module is searched for at $RANKLAB_CUDA_MODULE, else beside the executable, else in ../lib relative
// to it; it stays open for the life of the process. Open it before the first use of a CUDA tensor. Thread rule: call
// from the main thread, before ranks start.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/comm/device_queues.h"
#include "core/comm/world.h"

namespace ranklab {

struct CudaWorldOptions {
  std::chrono::milliseconds hang_timeout{60'000};        // for a call, from its start on the GPU; 0: none
  std::chrono::milliseconds rendezvous_timeout{60'000};  // until all processes have joined
  // Compare every call between members through the store before it runs: slow; for finding a mismatch.
  bool check_calls = false;
  // Reduce in the canonical tree order of tree_reduce.h (bit-identical to cpu_sim) by gathering first: size() times the
  // memory and traffic. Otherwise NCCL chooses the order.
  bool canonical_reductions = false;
  // Use only kernels that are bitwise reproducible, without sums by atomic additions. An operation that has none
  // throws.
  bool deterministic = false;
  // Other ranks are threads of this process (the tests' stand-in for NCCL). The allocator's cache is then not emptied:
  // that waits for the GPUs of all these ranks, and one of them may wait for a call that this rank has not started.
  bool shares_process = false;
  // Called just before a process whose rank does not return exits with the error. The program may exit itself, if the
  // error is only how a run ends that a signal ended.
  std::function<void(const Error&)> on_stuck = {};
};

// The places where the module is searched for, in this order.
std::vector<std::filesystem::path> cuda_module_places();

// Whether make_cuda_world() can work here. If not, *why_not says what is missing.
bool cuda_backend_available(std::string* why_not);

// This process's rank of the world described by its launcher's environment (core/comm/process_env.h); without such an
// environment, a world of one rank. Throws kEnvironment, with advice, if CUDA is not available.
std::unique_ptr<World> make_cuda_world(const CudaWorldOptions& options);

// This process's GPU for ranks that are threads. Throws like make_cuda_world().
std::shared_ptr<DeviceQueues> make_cuda_queues();

}  // namespace ranklab
