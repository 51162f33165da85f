// Generations of GPUs that software treats in different ways, as a profile tells them apart. Thread rule: pure.
#pragma once
#include <cstdint>

namespace ranklab {

struct HardwareProfile;

enum class GpuGeneration : uint8_t { kAmpere, kHopper, kBlackwell, kBlackwellRack };

// Racks share NVLink over more than a node's eight GPUs; their runs launch graphs of kernels, those of other Blackwell
// machines kernel after kernel. Without measured kernels Blackwell counts as Hopper: products in 4 bits tell them
// apart.
GpuGeneration gpu_generation(const HardwareProfile& profile);

// Bytes of a workspace of cuBLAS that PyTorch gives to each thread that launches products, unless
// CUBLAS_WORKSPACE_CONFIG says otherwise, and of Transformer Engine's own.
double cublas_workspace_bytes(GpuGeneration gpu);
double engine_workspace_bytes(GpuGeneration gpu);

}  // namespace ranklab
