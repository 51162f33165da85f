// Provides the kernels of kernels/ through core's interface, on the current stream of the current device. Thread rule:
// as device_kernels.h.
#pragma once
#include "core/nn/kernels/device_kernels.h"

namespace ranklab {

// Lives as long as the process.
const DeviceKernels& cuda_kernels();

}  // namespace ranklab
