// Provides the kernels of operand_kernels.h through core's interface, on the current stream of the current device.
// Thread rule: as device_rounding.h.
#pragma once
#include "core/precision/device_rounding.h"

namespace ranklab {

// Lives as long as the process.
const DeviceRounding& cuda_rounding();

}  // namespace ranklab
