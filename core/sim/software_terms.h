// What training software costs besides its factors on kernels and collectives (software.h), where a run or a machine
// makes the difference:
//   machine     attention of PyTorch and Triton is written for Ampere: on Hopper and later it reaches about half of
//   what
//               FlashAttention-3 and cuDNN do there, which the profiles' constants are of; FP8 products of experts and
//               what is between them take longer on Hopper, whose hosts launch every kernel
//   selective   torchtitan's selective recomputation saves every second product only; Megatron's saves all
//   hidden      collectives behind compute take SMs, memory bandwidth and power from it
//   slowest     all GPUs of a step wait for the slowest one; above some hundred that grows with their number
// Constants are fitted to a random half of published runs (docs/planner.md). With `--efficiency measured` alone. Thread
// rule: pure.
#pragma once
#include <string>

namespace ranklab {

struct HardwareProfile;

// The profile's software as it runs on that machine, with that --recompute-granularity.
void adapt_software(HardwareProfile& profile, const std::string& recompute_granularity);

// Of the time that collectives take behind compute, the share by which compute takes longer.
double hidden_share(const HardwareProfile& profile);
// By how much a step of so many GPUs takes longer than one of a few hundred.
double slowest_share(const HardwareProfile& profile, int gpus);

}  // namespace ranklab
