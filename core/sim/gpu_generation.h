// Generations of GPUs that software treats in different ways, by a profile's compute capability. Thread rule: pure.
#pragma once
#include <cstdint>

namespace ranklab {

struct HardwareProfile;

// kAmpere: also what is older, Ada (8.9), for which the same kernels are written, and what is no GPU of NVIDIA. Racks
// share NVLink over more than a node's eight GPUs; their runs launch graphs of kernels, those of other Blackwell
// machines kernel after kernel.
enum class GpuGeneration : uint8_t { kAmpere, kHopper, kBlackwell, kBlackwellRack };

GpuGeneration gpu_generation(const HardwareProfile& profile);

// Bytes of a workspace of cuBLAS that PyTorch gives to each thread that launches products: the software's
// (SoftwareMemory::cublas_mib) or PyTorch's default; and of Transformer Engine's own.
double cublas_workspace_bytes(const HardwareProfile& profile);
double engine_workspace_bytes(GpuGeneration gpu);

}  // namespace ranklab
