// The fused kernels of a GPU on the stand-in's streams: the loops of HostKernels (host_kernels.h), which find a GPU's
// addresses where the host has them. Thread rule: as DeviceKernels.
#pragma once

namespace ranklab::stand_in {

// Registers them for GPUs' tensors, for good.
void use_stream_kernels();

}  // namespace ranklab::stand_in
