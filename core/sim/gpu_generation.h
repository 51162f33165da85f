// Generations of GPUs that software treats differently, derived from a profile's compute capability. Thread rule: pure.
#pragma once
#include <cstdint>

namespace ranklab {

struct HardwareProfile;

// kAmpere also covers older GPUs, Ada (8.9, for which the same kernels are written), and GPUs that are not NVIDIA's.
// kBlackwellRack: racks that share NVLink over more than the eight GPUs of a node; their runs launch CUDA graphs,
// whereas runs on other Blackwell machines launch kernel after kernel.
enum class GpuGeneration : uint8_t { kAmpere, kHopper, kBlackwell, kBlackwellRack };

GpuGeneration gpu_generation(const HardwareProfile& profile);

// Bytes of the workspace that PyTorch gives cuBLAS for each thread that launches products: the software's value
// (SoftwareMemory::cublas_mib) or else PyTorch's default. The second: bytes of Transformer Engine's own workspace.
double cublas_workspace_bytes(const HardwareProfile& profile);
double engine_workspace_bytes(GpuGeneration gpu);

}  // namespace ranklab
