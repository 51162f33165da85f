#include "core/nn/kernels/device_kernels.h"

#include <array>
#include <atomic>

namespace ranklab {
namespace {

std::array<std::atomic<const DeviceKernels*>, 2> g_kernels{};

}  // namespace

void use_device_kernels(KernelDevice device, const DeviceKernels* kernels) {
  g_kernels[static_cast<size_t>(device)] = kernels;
}
const DeviceKernels* device_kernels(KernelDevice device) { return g_kernels[static_cast<size_t>(device)]; }

}  // namespace ranklab
