// The functions of libranklab_cuda.so (backends/cuda/module.cpp) over the stand-ins for CUDA and NCCL: with
// RANKLAB_CUDA_MODULE naming this library, the program itself trains, generates and saves on a GPU that is not there.
#include "backends/cuda/cuda_world.h"
#include "backends/cuda/device_queues.h"
#include "backends/cuda/module_interface.h"
#include "core/comm/process_env.h"
#include "tests/cuda/stand_in/host_tensors.h"
#include "tests/cuda/stand_in/stream_kernels.h"
#include "tests/cuda/stand_in/stream_rounding.h"

extern "C" {

__attribute__((visibility("default"))) int ranklab_cuda_module_version() { return ranklab::kCudaModuleVersion; }

__attribute__((visibility("default"))) bool ranklab_cuda_module_usable(std::string* why_not) {
  ranklab::stand_in::use_host_tensors();
  return ranklab::cuda_device_usable(why_not);
}

__attribute__((visibility("default"))) ranklab::World* ranklab_cuda_module_make_world(
    const ranklab::CudaWorldOptions& options) {
  ranklab::ProcessEnv env = ranklab::read_process_env();
  ranklab::complete_master(env);
  return ranklab::make_nccl_world(env, options).release();
}

__attribute__((visibility("default"))) const ranklab::DeviceRounding* ranklab_cuda_module_rounding() {
  return &ranklab::stand_in::stream_rounding();
}

__attribute__((visibility("default"))) const ranklab::DeviceKernels* ranklab_cuda_module_kernels() {
  return &ranklab::stand_in::stream_kernels();
}

__attribute__((visibility("default"))) ranklab::DeviceQueues* ranklab_cuda_module_make_queues() {
  return ranklab::make_stream_queues().release();
}

__attribute__((visibility("default"))) void ranklab_cuda_module_watch_memory(void (*taken)(const void* block,
                                                                                           int64_t bytes),
                                                                             void (*given)(const void* block)) {
  ranklab::watch_gpu_memory(taken, given);
}
}
