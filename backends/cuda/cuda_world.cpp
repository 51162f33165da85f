#include "backends/cuda/cuda_world.h"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <map>

#include "backends/cuda/backend_row.h"
#include "backends/cuda/gpu_choice.h"
#include "backends/cuda/nccl/nccl_communicator.h"
#include "backends/cuda/nccl/rendezvous.h"
#include "backends/cuda/stream_graph.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/sim/torch_error.h"

namespace ranklab {
namespace {

class NcclEndpoint final : public Endpoint {
 public:
  NcclEndpoint(const ProcessEnv& env, NcclContextPtr context) : env_(env), context_(std::move(context)) {}

  int global_rank() const override { return env_.rank; }
  int world_size() const override { return env_.world_size; }
  c10::Device device() const override { return context_->device; }
  CommunicatorPtr communicator(const Group& group) override {
    const int serial = serials_[group.label()]++;
    return std::make_shared<NcclCommunicator>(group, serial, context_);
  }
  std::shared_ptr<GraphRecorder> graph_recorder() override { return make_stream_recorder(context_); }

 private:
  ProcessEnv env_;
  NcclContextPtr context_;
  std::map<std::string, int> serials_;  // number of communicators made so far, by group
};

// Identifies a GPU across processes: "node7/0000:1b:00.0".
std::string gpu_place(int device) {
  std::array<char, 64> bus{};
  std::array<char, 256> host{};
  cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device);
  ::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + "/" + bus.data();
}

// Converts the body's exception into one of our errors.
Error error_of(const std::exception_ptr& thrown, const std::string& where) {
  const auto foreign = [&](const std::string& what) {
    return Error(ErrorKind::kCommunication, {.where = where, .what = "the rank threw", .got = what});
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return foreign(message_of(error));
  } catch (...) {
    return foreign("something that is not a std::exception");
  }
}

// Runs backward on the rank's own thread, as on the CPU, because call purposes, memory categories and queues of weight
// gradients are thread-local.
class OneThreadBackward {
 public:
  OneThreadBackward() : before_(state().get_multithreading_enabled()) { state().set_multithreading_enabled(false); }
  ~OneThreadBackward() { state().set_multithreading_enabled(before_); }
  OneThreadBackward(const OneThreadBackward&) = delete;
  OneThreadBackward& operator=(const OneThreadBackward&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  bool before_;
};

// Affects the whole process.
void use_deterministic_kernels() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // before cuBLAS creates its first handle
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);  // that fill is only for debugging, and slow
}

class NcclWorld final : public World {
 public:
  NcclWorld(const ProcessEnv& env, int gpu, const CudaWorldOptions& options)
      : env_(env), gpu_(gpu), options_(options), rendezvous_(env, options.rendezvous_timeout, wait_limit(options)) {}

  int size() const override { return env_.world_size; }
  int local_ranks() const override { return 1; }
  bool has_rank_zero() const override { return env_.rank == 0; }
  Capabilities capabilities() const override { return kCudaBackendRow.on_gpu; }

  int gpus() const override {
    int count = 0;
    return shares_gpu() && cudaGetDeviceCount(&count) == cudaSuccess ? std::min(count, env_.world_size)
                                                                     : env_.world_size;
  }
  std::string gpu_name() const override {
    cudaDeviceProp properties{};
    return cudaGetDeviceProperties(&properties, gpu_) == cudaSuccess ? properties.name : "";
  }
  std::string describe() const override {
    const std::string gpu = gpu_name();
    int nccl = 0;
    ncclGetVersion(&nccl);
    return strprintf("%d GPU process%s, %s%s, NCCL %d.%d.%d%s%s", env_.world_size, env_.world_size == 1 ? "" : "es",
                     gpu.empty() ? "unknown GPU" : gpu.c_str(), shares_gpu() ? " (shared)" : "", nccl / 10000,
                     nccl / 100 % 100, nccl % 100, options_.canonical_reductions ? ", canonical reductions" : "",
                     options_.check_calls ? ", calls compared" : "") +
           (options_.deterministic ? ", deterministic kernels" : "");
  }

  void give_up(const std::string& why) noexcept override { rendezvous_.report_failure(why); }

  void run(const std::function<void(Endpoint&)>& body) override {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(gpu_));
    if (env_.world_size > 1) set_log_rank(env_.rank);
    const OneThreadBackward one_thread;
    if (has_run_) rendezvous_.next_generation();
    has_run_ = true;
    const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(gpu_));
    const auto context = std::make_shared<NcclContext>(rendezvous_, options_, device, gpu_place(gpu_));
    try {
      NcclEndpoint endpoint(env_, context);
      body(endpoint);
      c10::cuda::device_synchronize();  // so that an error on the GPU is attributed to this run
      context->failure.throw_if_set();
      // Rank 0, and the store with it, may exit as soon as it has seen the others finish.
      if (env_.rank != 0) context->heartbeat.stop();
      rendezvous_.finish();
    } catch (...) {
      fail(*context, error_of(std::current_exception(), rendezvous_.where()));
    }
  }

 private:
  // Throws this rank's first error, because the body's exception may be a consequence of what the watchdog found.
  [[noreturn]] void fail(NcclContext& context, const Error& thrown) {
    context.failure.set(thrown, true);
    context.heartbeat.stop();  // reports the error, unless another rank has done so
    rendezvous_.linger();
    throw *context.failure.get();
  }

  ProcessEnv env_;
  int gpu_;
  CudaWorldOptions options_;
  Rendezvous rendezvous_;
  bool has_run_ = false;
};

}  // namespace

bool cuda_device_usable(std::string* why_not) {
  prepare_cuda_environment();
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return true;
  if (why_not != nullptr) *why_not = code == cudaSuccess ? "no CUDA device" : cudaGetErrorString(code);
  return false;
}

std::unique_ptr<World> make_nccl_world(const ProcessEnv& env, const CudaWorldOptions& options) {
  int count = 0;
  cudaGetDeviceCount(&count);
  const int gpu = choose_gpu(env, count, shares_gpu());
  prepare_nccl_environment(env);
  if (options.deterministic) use_deterministic_kernels();
  return std::make_unique<NcclWorld>(env, gpu, options);
}

}  // namespace ranklab
