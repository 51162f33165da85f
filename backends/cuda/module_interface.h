// The functions that libranklab_cuda.so exports under unmangled names, and their types, which the loader needs to look
// them up. Thread rule: as cuda_backend.h.
#pragma once
#include "backends/cuda/cuda_backend.h"
#include "core/comm/device_queues.h"
#include "core/nn/kernels/device_kernels.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

// Incremented when the functions below or the structs they pass change.
constexpr int kCudaModuleVersion = 6;

using CudaModuleVersionFunction = int();
// Writes why no GPU can be used into *why_not and returns false, or returns true.
using CudaModuleUsableFunction = bool(std::string* why_not);
using CudaModuleMakeWorldFunction = World*(const CudaWorldOptions& options);  // the caller owns the result
using CudaModuleRoundingFunction = const DeviceRounding*();                   // lives as long as the module
using CudaModuleKernelsFunction = const DeviceKernels*();                     // lives as long as the module, too

using CudaModuleMakeQueuesFunction = DeviceQueues*();  // the caller owns the result
using CudaModuleWatchMemoryFunction = void(void (*taken)(const void* block, int64_t bytes),
                                           void (*given)(const void* block));

constexpr const char* kCudaModuleVersionName = "ranklab_cuda_module_version";
constexpr const char* kCudaModuleUsableName = "ranklab_cuda_module_usable";
constexpr const char* kCudaModuleMakeWorldName = "ranklab_cuda_module_make_world";
constexpr const char* kCudaModuleRoundingName = "ranklab_cuda_module_rounding";
constexpr const char* kCudaModuleKernelsName = "ranklab_cuda_module_kernels";
constexpr const char* kCudaModuleMakeQueuesName = "ranklab_cuda_module_make_queues";
constexpr const char* kCudaModuleWatchMemoryName = "ranklab_cuda_module_watch_memory";

}  // namespace ranklab
