#include "core/sim/gpu_generation.h"

#include "core/sim/hardware_profile.h"

namespace ranklab {
namespace {

constexpr double kMiB = 1024 * 1024;

}  // namespace

GpuGeneration gpu_generation(const HardwareProfile& profile) {
  constexpr double kHopper = 9, kBlackwell = 10;
  constexpr int kNode = 8;
  if (profile.compute_capability < kHopper) return GpuGeneration::kAmpere;
  if (profile.compute_capability < kBlackwell) return GpuGeneration::kHopper;
  return profile.gpus_per_node > kNode ? GpuGeneration::kBlackwellRack : GpuGeneration::kBlackwell;
}

// Hopper: eight blocks of 4 MiB; other GPUs: two of 4 MiB and eight of 16 KiB. Both as measured by Megatron-LM's tests,
// also on GB200, in runs that did not set CUBLAS_WORKSPACE_CONFIG.
double cublas_workspace_bytes(const HardwareProfile& profile) {
  const double usual_mib = gpu_generation(profile) == GpuGeneration::kHopper ? 32 : 8.125;
  return profile.software.memory.cublas_mib.value_or(usual_mib) * kMiB;
}

double engine_workspace_bytes(GpuGeneration gpu) { return (gpu == GpuGeneration::kAmpere ? 4 : 32) * kMiB; }

}  // namespace ranklab
