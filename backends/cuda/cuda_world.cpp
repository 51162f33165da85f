#include "backends/cuda/cuda_world.h"

#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <map>

#include "backends/cuda/nccl_communicator.h"
#include "backends/cuda/rendezvous.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

class NcclEndpoint final : public Endpoint {
 public:
  NcclEndpoint(const ProcessEnv& env, const CudaWorldOptions& options, Rendezvous& rendezvous)
      : env_(env), options_(options), rendezvous_(rendezvous) {}

  int global_rank() const override { return env_.rank; }
  int world_size() const override { return env_.world_size; }
  c10::Device device() const override {
    return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(env_.local_rank)};
  }
  CommunicatorPtr communicator(const Group& group) override {
    const int serial = serials_[group.label()]++;
    return std::make_shared<NcclCommunicator>(group, serial, device(), rendezvous_, options_);
  }

 private:
  ProcessEnv env_;
  CudaWorldOptions options_;
  Rendezvous& rendezvous_;
  std::map<std::string, int> serials_;  // communicators made so far, by group
};

class NcclWorld final : public World {
 public:
  NcclWorld(const ProcessEnv& env, const CudaWorldOptions& options)
      : env_(env), options_(options), rendezvous_(env, options.timeout) {}

  int size() const override { return env_.world_size; }
  int local_ranks() const override { return 1; }
  bool has_rank_zero() const override { return env_.rank == 0; }

  int gpus() const override { return env_.world_size; }
  std::string gpu_name() const override {
    cudaDeviceProp properties{};
    return cudaGetDeviceProperties(&properties, env_.local_rank) == cudaSuccess ? properties.name : "";
  }
  std::string describe() const override {
    cudaDeviceProp properties{};
    int nccl = 0;
    ncclGetVersion(&nccl);
    const bool known = cudaGetDeviceProperties(&properties, env_.local_rank) == cudaSuccess;
    return strprintf("%d GPU process%s, %s, NCCL %d.%d.%d%s", env_.world_size, env_.world_size == 1 ? "" : "es",
                     known ? properties.name : "unknown GPU", nccl / 10000, nccl / 100 % 100, nccl % 100,
                     options_.canonical_reductions ? ", canonical reductions" : "");
  }

  void run(const std::function<void(Endpoint&)>& body) override {
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(env_.local_rank));
    if (env_.world_size > 1) set_log_rank(env_.rank);
    try {
      NcclEndpoint endpoint(env_, options_, rendezvous_);
      body(endpoint);
    } catch (const std::exception& error) {
      rendezvous_.report_failure(error.what());
      throw;
    }
    rendezvous_.finish();
  }

 private:
  ProcessEnv env_;
  CudaWorldOptions options_;
  Rendezvous rendezvous_;
};

}  // namespace

bool cuda_device_usable(std::string* why_not) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return true;
  if (why_not != nullptr) *why_not = code == cudaSuccess ? "no CUDA device" : cudaGetErrorString(code);
  return false;
}

std::unique_ptr<World> make_nccl_world(const ProcessEnv& env, const CudaWorldOptions& options) {
  int count = 0;
  cudaGetDeviceCount(&count);
  RANKLAB_CHECK(env.local_rank < count, ErrorKind::kEnvironment, .where = "cuda backend",
                .what = "this process has no GPU of its own", .got = "LOCAL_RANK " + std::to_string(env.local_rank),
                .want = "less than " + std::to_string(count) + ", the GPUs of this machine",
                .fix = "start at most " + std::to_string(count) + " processes here");
  return std::make_unique<NcclWorld>(env, options);
}

}  // namespace ranklab
