#include "core/precision/device_rounding.h"

#include <array>
#include <atomic>

namespace ranklab {
namespace {

std::array<std::atomic<const DeviceRounding*>, 2> g_rounding{};

}  // namespace

void use_device_rounding(const DeviceRounding* rounding, RoundedTensors tensors) {
  g_rounding[static_cast<size_t>(tensors)] = rounding;
}
const DeviceRounding* device_rounding(RoundedTensors tensors) { return g_rounding[static_cast<size_t>(tensors)]; }

}  // namespace ranklab
