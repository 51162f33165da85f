#include "core/sim/gpu_generation.h"

#include "core/sim/hardware_profile.h"

namespace ranklab {
namespace {

constexpr double kMiB = 1024 * 1024;

}  // namespace

GpuGeneration gpu_generation(const HardwareProfile& profile) {
  constexpr int kNode = 8;
  if (profile.peak_flops_fp8 <= 0) return GpuGeneration::kAmpere;
  if (profile.kernels == nullptr || !profile.kernels->gemm_4bit) return GpuGeneration::kHopper;
  return profile.gpus_per_node > kNode ? GpuGeneration::kBlackwellRack : GpuGeneration::kBlackwell;
}

// Hopper's eight of 4 MiB; others' two of 4 MiB and eight of 16 KiB. Both as Megatron-LM's tests measured them, on
// GB200 too, in runs that set no CUBLAS_WORKSPACE_CONFIG.
double cublas_workspace_bytes(GpuGeneration gpu) { return (gpu == GpuGeneration::kHopper ? 32 : 8.125) * kMiB; }

double engine_workspace_bytes(GpuGeneration gpu) { return (gpu == GpuGeneration::kAmpere ? 4 : 32) * kMiB; }

}  // namespace ranklab
