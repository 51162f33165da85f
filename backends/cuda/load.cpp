// Finds and opens the CUDA module.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/module_interface.h"
#include "backends/cuda/no_cuda.h"
#include "core/base/system.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kModuleName = "libranklab_cuda.so";

struct CudaModule {
  CudaModuleUsableFunction* usable = nullptr;
  CudaModuleMakeWorldFunction* make_world = nullptr;
  CudaModuleRoundingFunction* rounding = nullptr;
  CudaModuleKernelsFunction* kernels = nullptr;
  CudaModuleMakeQueuesFunction* make_queues = nullptr;
  CudaModuleWatchMemoryFunction* watch_memory = nullptr;
};

fs::path find_module() {
  std::string looked;
  for (const fs::path& path : cuda_module_places()) {
    std::error_code unreadable;
    if (fs::exists(path, unreadable)) return path;
    looked += (looked.empty() ? "" : ", ") + path.lexically_normal().string();
  }
  throw no_cuda_error(CudaAbsence::kNoModule, "nothing at " + looked);
}

template <typename Function>
Function* find_function(void* handle, const char* name) {
  void* symbol = dlsym(handle, name);
  if (symbol == nullptr) throw no_cuda_error(CudaAbsence::kOtherBuild, "no function " + std::string(name));
  return reinterpret_cast<Function*>(symbol);
}

CudaModule open_module() {
  const fs::path path = find_module();
  // Opened with RTLD_GLOBAL, because its LibTorch registers the CUDA kernels for the whole process.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw no_cuda_error(CudaAbsence::kNotLoaded, reason != nullptr ? reason : path.string());
  }
  const int version = find_function<CudaModuleVersionFunction>(handle, kCudaModuleVersionName)();
  if (version != kCudaModuleVersion) {
    throw no_cuda_error(CudaAbsence::kOtherBuild,
                        "module version " + std::to_string(version) + ", want " + std::to_string(kCudaModuleVersion));
  }
  return {find_function<CudaModuleUsableFunction>(handle, kCudaModuleUsableName),
          find_function<CudaModuleMakeWorldFunction>(handle, kCudaModuleMakeWorldName),
          find_function<CudaModuleRoundingFunction>(handle, kCudaModuleRoundingName),
          find_function<CudaModuleKernelsFunction>(handle, kCudaModuleKernelsName),
          find_function<CudaModuleMakeQueuesFunction>(handle, kCudaModuleMakeQueuesName),
          find_function<CudaModuleWatchMemoryFunction>(handle, kCudaModuleWatchMemoryName)};
}

// Opened once and never closed, because it contains the worlds' code and LibTorch's registrations.
const CudaModule& usable_module() {
  static const CudaModule module = open_module();
  std::string why_not;
  if (!module.usable(&why_not)) throw no_cuda_error(CudaAbsence::kNoDevice, why_not);
  use_device_rounding(module.rounding());
  use_device_kernels(KernelDevice::kCuda, module.kernels());
  static std::once_flag watched;
  std::call_once(watched, [] { module.watch_memory(&device_block_taken, &device_block_given); });
  return module;
}

}  // namespace

std::vector<fs::path> cuda_module_places() {
  if (const char* given = std::getenv("RANKLAB_CUDA_MODULE"); given != nullptr && *given != '\0') return {given};
  const fs::path folder = program_path().parent_path();
  return {folder / kModuleName, folder / ".." / "lib" / kModuleName};
}

bool cuda_backend_available(std::string* why_not) {
  try {
    usable_module();
    return true;
  } catch (const Error& error) {
    if (why_not != nullptr) *why_not = error.what();
    return false;
  }
}

std::unique_ptr<World> make_cuda_world(const CudaWorldOptions& options) {
  return std::unique_ptr<World>(usable_module().make_world(options));
}

std::shared_ptr<DeviceQueues> make_cuda_queues() {
  return std::shared_ptr<DeviceQueues>(usable_module().make_queues());
}

}  // namespace ranklab
