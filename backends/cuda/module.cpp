// What libranklab_cuda.so exports.
#include "backends/cuda/cuda_kernels.h"
#include "backends/cuda/cuda_rounding.h"
#include "backends/cuda/cuda_world.h"
#include "backends/cuda/module_interface.h"
#include "core/comm/process_env.h"

extern "C" {

__attribute__((visibility("default"))) int ranklab_cuda_module_version() { return ranklab::kCudaModuleVersion; }

__attribute__((visibility("default"))) bool ranklab_cuda_module_usable(std::string* why_not) {
  return ranklab::cuda_device_usable(why_not);
}

__attribute__((visibility("default"))) ranklab::World* ranklab_cuda_module_make_world(
    const ranklab::CudaWorldOptions& options) {
  ranklab::ProcessEnv env = ranklab::read_process_env();
  ranklab::complete_master(env);
  return ranklab::make_nccl_world(env, options).release();
}

__attribute__((visibility("default"))) const ranklab::DeviceRounding* ranklab_cuda_module_rounding() {
  return &ranklab::cuda_rounding();
}

__attribute__((visibility("default"))) const ranklab::DeviceKernels* ranklab_cuda_module_kernels() {
  return &ranklab::cuda_kernels();
}
}
