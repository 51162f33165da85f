#include "core/sim/kernel_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/sim/hardware_profile.h"

namespace ranklab {
namespace {

constexpr double kCachedBytes = 30e6, kThrottledSeconds = 3e-3, kQueryTile = 128;
constexpr int64_t kShortestSplit = 256;
// If rows of a batch's 16-bit matrices are not multiples of 16 bytes, the batch cannot use tensor cores: attention with
// heads of width 108, 180 and 225 reached 8 to 11 TFLOP/s in BLOOM's runs on A100, whose other units have 19.5
// (chronicles-prequel.md, "NHEADs comparison").
constexpr double kWholeRow = 8, kOfOtherUnits = 0.5;

struct Tile {
  double rows, cols;
};
constexpr std::array kTiles = {Tile{256, 128}, Tile{128, 256}, Tile{128, 128}, Tile{128, 64}, Tile{64, 128},
                               Tile{64, 64},   Tile{64, 32},   Tile{32, 64},   Tile{256, 64}, Tile{64, 256}};

// The time of two parts that mostly overlap.
double either(double compute_s, double moved_s) {
  return std::cbrt(compute_s * compute_s * compute_s + moved_s * moved_s * moved_s);
}

struct Gpu {
  double peak_flops, bandwidth, sms, peak_fp32;
};

bool off_tensor_cores(const KernelWork& work) {
  const KernelShape& s = work.shape;
  const bool half = work.dtype == DType::kBFloat16 || work.dtype == DType::kFloat16;
  return half && s.batches > 1 && s.launches == 1 && (std::fmod(s.n, kWholeRow) != 0 || std::fmod(s.k, kWholeRow) != 0);
}

double tiles_seconds(const GemmEfficiency& e, const Gpu& gpu, const KernelShape& s) {
  const double rate = gpu.peak_flops * e.efficiency / gpu.sms, written = 4 * s.m * s.n * s.batches;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(s.m / tile.rows) * std::ceil(s.n / tile.cols) * s.batches;
    const double reached = rate / (1 + e.tile_loss * (1 / tile.rows + 1 / tile.cols));
    for (const double split : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      if (split > 1 && s.k / split < kShortestSplit) break;
      const double share = tiles * split / gpu.sms;
      const double waves = share <= 1 ? 1 : (1 - e.wave_rounding) * share + e.wave_rounding * std::ceil(share);
      double t = waves * (std::ceil(s.k / split) + e.inner_overhead) * 2 * tile.rows * tile.cols / reached;
      if (split > 1) t += written * split / (gpu.bandwidth * e.bandwidth) + e.split_us * 1e-6;
      best = std::min(best, t);
    }
  }
  return best * (1 + e.throttle * best / (best + kThrottledSeconds));
}

double product_seconds(const GemmEfficiency& e, const Gpu& gpu, const KernelWork& work) {
  double moved = work.bytes / (gpu.bandwidth * e.bandwidth);
  if (work.bytes < kCachedBytes) moved /= e.cached;
  double compute = tiles_seconds(e, gpu, work.shape);
  if (off_tensor_cores(work)) compute = std::max(compute, work.flops / (kOfOtherUnits * gpu.peak_fp32));
  return e.launch_us * 1e-6 + either(compute, moved);
}

double attention_seconds(const AttentionEfficiency& e, const Gpu& gpu, const KernelWork& work) {
  const KernelShape& s = work.shape;
  double rate = gpu.peak_flops * e.efficiency * s.k / (s.k + e.width_loss) / gpu.sms;
  if (s.backward) rate *= e.backward;
  if (s.square) rate *= e.square;
  const double tiles = std::max(s.m / kQueryTile, 1.0);
  const double of_tile = work.flops / tiles * (s.n + e.inner_overhead) / std::max(s.n, 1.0) / rate;
  const double compute = std::max(tiles / gpu.sms + e.tail, 1.0) * of_tile;
  return e.launch_us * 1e-6 + either(compute, work.bytes / (gpu.bandwidth * e.bandwidth));
}

const GemmEfficiency& gemm_of(const KernelEfficiency& e, const KernelWork& work) {
  if (work.shape.bits == 4 && e.gemm_4bit) return *e.gemm_4bit;
  return work.dtype == DType::kFloat8 && e.gemm_8bit ? *e.gemm_8bit : e.gemm_16bit;
}

double measured_seconds(const HardwareProfile& profile, const KernelWork& work) {
  const KernelEfficiency& e = *profile.kernels;
  const Gpu gpu{profile.peak_flops(work.dtype), profile.memory_bandwidth, static_cast<double>(e.sms),
                profile.peak_flops_fp32};
  switch (work.shape.kind) {
    case KernelShape::Kind::kProduct:
    case KernelShape::Kind::kLowProduct:
      return product_seconds(gemm_of(e, work), gpu, work);
    case KernelShape::Kind::kAttention:
      return attention_seconds(e.attention, gpu, work);
    case KernelShape::Kind::kOther:
    case KernelShape::Kind::kQuantize:
    case KernelShape::Kind::kLoss:
      break;
  }
  return e.launch_us * 1e-6 + std::max(work.flops / gpu.peak_flops, work.bytes / (gpu.bandwidth * e.bandwidth));
}

double roofline_seconds(const HardwareProfile& profile, const KernelWork& work) {
  return std::max(work.flops / profile.peak_flops(work.dtype), work.bytes / profile.memory_bandwidth) +
         profile.launch_overhead_ns * 1e-9;
}

}  // namespace

int64_t kernel_ns(const HardwareProfile& profile, const KernelWork& work) {
  if (profile.kernels == nullptr) return std::llround(roofline_seconds(profile, work) * 1e9);
  const double factor = profile.software.kernels.at(static_cast<size_t>(work.shape.kind));
  return std::llround(measured_seconds(profile, work) * factor * 1e9);
}

KernelBound kernel_bound(const HardwareProfile& profile, const KernelWork& work) {
  const bool off = profile.kernels != nullptr && off_tensor_cores(work);
  const double compute_s =
                   work.flops / (off ? kOfOtherUnits * profile.peak_flops_fp32 : profile.peak_flops(work.dtype)),
               memory_s = work.bytes / profile.memory_bandwidth;
  if (profile.launch_overhead_ns * 1e-9 >= std::max(compute_s, memory_s)) return KernelBound::kLaunch;
  return compute_s >= memory_s ? KernelBound::kCompute : KernelBound::kMemory;
}

}  // namespace ranklab
