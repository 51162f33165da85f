// What training software costs besides its factors on kernels and collectives (software.h), where a run or a machine
// makes the difference:
//   machine     attention of PyTorch and Triton is written for Ampere: on Hopper and later it reaches about half of
//               FlashAttention-3 and cuDNN; other factors of a machine are fitted, and say no cause
//   selective   torchtitan's selective recomputation saves every second product only; Megatron's saves all
//   hidden      collectives behind compute take SMs, memory bandwidth and power from it
//   slowest     all GPUs of a step wait for the slowest one; above some hundred that grows with their number
//   launches    a host launches kernel after kernel, and short ones wait for it (core/sim/op_observer.h); on racks of
//               Blackwell, whose runs launch graphs of kernels, it takes less than half as long for each; where each
//               launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1) no kernel hides it
//   exchanges   Megatron's host of 2023 batches a pipeline's sends and receives and waits for them
//   messages    Megatron's tensor-parallel ranks, which hold the same activations without sequence parallelism, each
//               send a part of them to the next stage, whose node gathers them (arXiv 2104.04473, section 4.1)
//   8 bits      torch's compiler rounds with a scale for each tensor before tensor-parallel ranks gather, which halves
//               the bytes of two exchanges in three; products with a scale for each row are another library's kernels
//   async       tensor parallelism in pieces hides a part of its exchanges behind its products
//   shards      DeepSpeed gathers weights of ZeRO-3 parameter by parameter: between nodes a tenth of the NICs' rate,
//               by the two runs of it that were published beside Megatron-LM's (arXiv 2104.04473, table 2)
//   pieces      after a step of ZeRO-1 Nanotron cuts, gathers and copies each parameter's part of each rank by a call
//               of its own (src/nanotron/optim/zero.py); InternEvo's ranks own whole parameters, and each broadcasts
//               its own through a ring of all others (solver/optimizer/hybrid_zero_optim.py): microseconds a hop
// What the constants are and how they were fitted: docs/planner.md. With `--efficiency measured` alone. Thread rule:
// pure.
#pragma once
#include <cstdint>

namespace ranklab {

struct HardwareProfile;

// What of a run makes a difference to its software.
struct SoftwareRun {
  bool recomputes_attention = false;  // selectively
  bool scales_rows = false;           // products of 8 bits with a scale for each row ...
  bool scales_tensors = false;        // ... or for each tensor, which is gathered after it was rounded
  int same_activations = 1;           // tensor-parallel ranks that hold the same between layers
};

// The profile's software as it runs on that machine, in that run.
void adapt_software(HardwareProfile& profile, const SoftwareRun& run);

// How long ranks that share the optimizer's states of so many parameters take to hand each other what they updated,
// besides the time on the links.
double pieces_us(const HardwareProfile& profile, int64_t parameters, int64_t ranks);

// By how much a step of so many GPUs takes longer than one of a few hundred.
double slowest_share(const HardwareProfile& profile, int gpus);

}  // namespace ranklab
