// What training software costs besides its factors on kernels and collectives (software.h), where a run or a machine
// makes the difference:
//   machine     attention of PyTorch and Triton is written for Ampere: on Hopper and later it reaches about half of
//               FlashAttention-3 and cuDNN; on Hopper hosts launch every kernel, where Blackwell's runs launch graphs
//   selective   torchtitan's selective recomputation saves every second product only; Megatron's saves all
//   hidden      collectives behind compute take SMs, memory bandwidth and power from it
//   slowest     all GPUs of a step wait for the slowest one; above some hundred that grows with their number
// What the constants are and how they were fitted: docs/planner.md. With `--efficiency measured` alone. Thread rule:
// pure.
#pragma once
namespace ranklab {

struct HardwareProfile;

// The profile's software as it runs on that machine, in a run that recomputes attention selectively, or not.
void adapt_software(HardwareProfile& profile, bool recomputes_attention);

// By what share of the time that collectives take behind compute, compute takes longer.
double hidden_share(const HardwareProfile& profile);
// By how much a step of so many GPUs takes longer than one of a few hundred.
double slowest_share(const HardwareProfile& profile, int gpus);

}  // namespace ranklab
