// What training software costs besides its factors on kernels and collectives (software.h), where this depends on the
// run or the machine:
//   machine     attention of PyTorch and Triton is written for Ampere: on Hopper and later it reaches about half of
//               FlashAttention-3 and cuDNN; other factors of a machine are only fitted, without a known cause
//   selective   torchtitan's selective recomputation saves only every second product; Megatron's saves all
//   hidden      collectives hidden behind compute take SMs, memory bandwidth and power from it
//   slowest     all GPUs of a step wait for the slowest one; above a few hundred this grows with their number
//   launches    a host launches kernel after kernel, and short ones wait for it (core/sim/op_observer.h); on racks of
//               Blackwell, whose runs launch CUDA graphs, it takes less than half as long per kernel; if each launch
//               waits for its kernel (CUDA_LAUNCH_BLOCKING=1), no kernel hides it
//   exchanges   Megatron's host of 2023 batches a pipeline's sends and receives and waits for them
//   messages    Megatron's tensor-parallel ranks, which hold the same activations without sequence parallelism, each
//               send a part of them to the next stage, whose node gathers them (arXiv 2104.04473, section 4.1)
//   8 bits      torch's compiler rounds with one scale per tensor before tensor-parallel ranks gather, which halves the
//               bytes of two exchanges in three; products with one scale per row use another library's kernels
//   async       tensor parallelism in pieces hides a part of its exchanges behind its products, unless the plan already
//               hides them (--tp-comm-overlap)
//   shards      DeepSpeed gathers ZeRO-3's weights parameter by parameter: between nodes at a tenth of the NICs' rate,
//               according to the two runs that were published next to Megatron-LM's (arXiv 2104.04473, table 2)
//   pieces      after a step of ZeRO-1, Nanotron cuts, gathers and copies each rank's part of each parameter with a
//               separate call (src/nanotron/optim/zero.py); InternEvo's ranks own whole parameters, and each broadcasts
//               its own through a ring of all others (solver/optimizer/hybrid_zero_optim.py): microseconds per hop
// What the constants are and how they were fitted: docs/planner.md. Only with `--efficiency measured`. Thread rule:
// pure.
#pragma once
#include <cstdint>

namespace ranklab {

struct HardwareProfile;

// The properties of a run on which its software's costs depend.
struct SoftwareRun {
  bool recomputes_attention = false;  // by selective recomputation
  bool scales_rows = false;           // 8-bit products with one scale per row ...
  bool scales_tensors = false;        // ... or one per tensor, which is gathered after it was rounded
  bool overlaps_tensors = false;      // the plan itself hides tensor-parallel exchanges behind products
  int same_activations = 1;           // number of tensor-parallel ranks that hold the same activations between layers
};

// Adapts the profile's software to its machine and to this run.
void adapt_software(HardwareProfile& profile, const SoftwareRun& run);

// How long the ranks that share the optimizer's states of this many parameters take to send each other what they
// updated, besides the time on the links.
double pieces_us(const HardwareProfile& profile, int64_t parameters, int64_t ranks);

// By which fraction a step on this many GPUs takes longer than one on a few hundred.
double slowest_share(const HardwareProfile& profile, int gpus);

}  // namespace ranklab
