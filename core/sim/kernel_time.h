// How long a kernel takes on a profile: by the datasheet, as a roofline (Williams et al. 2009); or as measured for real
// kernels (`--efficiency measured`), by models with few constants each, which core/sim/profiles/fit_kernels.py fits to
// public measurements:
//   product    tiles of the output over the SMs in waves, with the best of ten tile sizes and five ways to split the
//              inner dimension; small tiles reach less of the peak, and long kernels run at a lower clock; batches
//              whose rows are not multiples of 16 bytes cannot use tensor cores
//   attention  tiles of 128 queries over the SMs, each over its keys; narrow heads reach less
//   others     bytes at the bandwidth that kernels reach
// Cost: a few hundred nanoseconds. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/dtype.h"
#include "core/base/kernel_bound.h"
#include "core/sim/kernel_shape.h"

namespace ranklab {

struct HardwareProfile;

struct GemmEfficiency {
  double efficiency = 1;      // fraction of the peak reached with large tiles; with tile_loss it may be above 1
  double tile_loss = 0;       // a tile of r x c reaches 1 / (1 + tile_loss (1 / r + 1 / c))
  double inner_overhead = 0;  // each tile takes as long as if k were larger by this
  double launch_us = 0;
  double bandwidth = 1;  // fraction of the memory bandwidth reached
  // 1: a last wave that is not full takes as long as a full one; 0: in proportion to its tiles
  double wave_rounding = 1;
  double cached = 1;    // speed-up of the memory traffic of less than 30 MB, thanks to the cache
  double split_us = 0;  // for splitting k
  double throttle = 0;  // slow-down of kernels that take much more than 3 ms
};

struct AttentionEfficiency {
  double efficiency = 1;
  double width_loss = 0;  // heads of width d reach d / (d + width_loss)
  double launch_us = 0;
  double bandwidth = 1;
  double inner_overhead = 0;  // in keys
  double tail = 0;            // in waves
  double backward = 1;        // rate of the backward relative to the forward
  double square = 1;          // rate without a causal mask, relative to that with one
};

struct KernelEfficiency {
  int sms = 1;
  double bandwidth = 1;  // fraction of the memory bandwidth that a memory-bound kernel reaches
  double launch_us = 2;  // time of the shortest kernel
  GemmEfficiency gemm_16bit;
  std::optional<GemmEfficiency> gemm_8bit;  // unset: as for 16 bits
  std::optional<GemmEfficiency> gemm_4bit;  // relative to the 8-bit peak; unset: as for 8 bits
  AttentionEfficiency attention;
};

struct KernelWork {
  double flops = 0, bytes = 0;
  DType dtype = DType::kFloat32;
  KernelShape shape = {};
};

// In whole nanoseconds.
int64_t kernel_ns(const HardwareProfile& profile, const KernelWork& work);
// What dominates that time, by the datasheet.
KernelBound kernel_bound(const HardwareProfile& profile, const KernelWork& work);

}  // namespace ranklab
