// The fused kernels of a GPU on the stand-in's streams: the loops of HostKernels (host_kernels.h), which find a GPU's
// addresses where the host has them. Thread rule: as DeviceKernels.
#pragma once
#include "core/nn/kernels/device_kernels.h"

namespace ranklab::stand_in {

const DeviceKernels& stream_kernels();

}  // namespace ranklab::stand_in
