#include "core/precision/device_rounding.h"

#include <atomic>

namespace ranklab {
namespace {

std::atomic<const DeviceRounding*> g_rounding{nullptr};

}  // namespace

void use_device_rounding(const DeviceRounding* rounding) { g_rounding = rounding; }
const DeviceRounding* device_rounding() { return g_rounding; }

}  // namespace ranklab
