// How long a kernel takes on a profile: by the datasheet, as a roofline (Williams et al. 2009), or as real kernels were
// measured to (`--efficiency measured`), by models with few constants each, which core/sim/profiles/fit_kernels.py fits
// to public measurements:
//   product    tiles of the output over the SMs in waves, with the best of ten tile sizes and five ways to split the
//              inner dimension; small tiles reach less of the peak, and long kernels less of the clock; batches whose
//              rows are no whole 16 bytes do without tensor cores
//   attention  tiles of 128 queries over the SMs, each over its keys; narrow heads reach less
//   others     bytes at the bandwidth that kernels reach
// Cost: some hundred nanoseconds. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/dtype.h"
#include "core/base/kernel_bound.h"
#include "core/sim/kernel_shape.h"

namespace ranklab {

struct HardwareProfile;

struct GemmEfficiency {
  double efficiency = 1;      // of the peak where tiles are large; with tile_loss it may be above 1
  double tile_loss = 0;       // of a tile of r x c: 1 / (1 + tile_loss (1 / r + 1 / c))
  double inner_overhead = 0;  // a tile takes as long as if k were larger by this
  double launch_us = 0;
  double bandwidth = 1;      // of the memory's, reached
  double wave_rounding = 1;  // 1: a last wave that is not full takes as long as a full one; 0: as its share
  double cached = 1;         // below 30 MB: times as fast
  double split_us = 0;       // for splitting k
  double throttle = 0;       // kernels of much more than 3 ms: by how much they take longer
};

struct AttentionEfficiency {
  double efficiency = 1;
  double width_loss = 0;  // of heads d wide: d / (d + width_loss)
  double launch_us = 0;
  double bandwidth = 1;
  double inner_overhead = 0;  // keys
  double tail = 0;            // waves
  double backward = 1;        // the backward's share of the forward's rate
  double square = 1;          // the rate without a causal mask, of that with one
};

struct KernelEfficiency {
  int sms = 1;
  double bandwidth = 1;  // of the memory's that a memory-bound kernel reaches
  double launch_us = 2;  // the shortest kernel
  GemmEfficiency gemm_16bit;
  std::optional<GemmEfficiency> gemm_8bit;  // none: as 16 bits
  std::optional<GemmEfficiency> gemm_4bit;  // of the 8-bit peak; none: as 8 bits
  AttentionEfficiency attention;
};

struct KernelWork {
  double flops = 0, bytes = 0;
  DType dtype = DType::kFloat32;
  KernelShape shape = {};
};

// Whole nanoseconds.
int64_t kernel_ns(const HardwareProfile& profile, const KernelWork& work);
// What most of that time is, by the datasheet.
KernelBound kernel_bound(const HardwareProfile& profile, const KernelWork& work);

}  // namespace ranklab
