#include "core/precision/hopper_sum.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/precision/vector_lanes.h"

namespace ranklab {
namespace {

using Floats = VectorLanes::Float;
using Bits = VectorLanes::Bits;
using Ints = VectorLanes::Signed;

constexpr int64_t kStep = 32, kPromotion = 128;
constexpr uint32_t kFraction = 13;  // bits of a sum below its leading one

// Adds at most 32 products of a row of a with eight rows of b to their sums; `b` has the eight rows interleaved.
RANKLAB_INLINE Floats add_step(Floats sum, const float* a, const float* b, int64_t count) {
  Floats products[kStep];
  Bits most = VectorLanes::bits(sum) & ~kFloatSign;
  for (int64_t k = 0; k < count; ++k) {
    products[k] = load_lanes<Floats>(b + k * kLaneCount) * a[k];
    const Bits size = VectorLanes::bits(products[k]) & ~kFloatSign;
    most = size > most ? size : most;
  }
  const Bits least = Bits{} + (kFraction + 1), exponent = most >> kFloatMantissaBits;
  const Bits biased = exponent > least ? exponent : least;
  constexpr uint32_t kTwiceBias = 254;
  const Floats to_units = VectorLanes::number((kTwiceBias + kFraction - biased) << kFloatMantissaBits);
  Ints units = __builtin_convertvector(sum * to_units, Ints);
  for (int64_t k = 0; k < count; ++k) units += __builtin_convertvector(products[k] * to_units, Ints);
  const Floats total =
      __builtin_convertvector(units, Floats) * VectorLanes::number((biased - kFraction) << kFloatMantissaBits);
  const Bits kept = VectorLanes::bits(total) & ~((1U << (kFloatMantissaBits - kFraction)) - 1);
  return VectorLanes::number(most >= kFloatExponent ? Bits{} + kFloatNan : kept);
}

RANKLAB_CLONES void sum_products(const float* a, const float* b, int64_t count, float* sums) {
  Floats sum = {};
  for (int64_t k = 0; k < count; k += kStep) sum = add_step(sum, a + k, b + k * kLaneCount, std::min(kStep, count - k));
  store_lanes(sum, sums);
}

float scale_at(const HopperOperand& x, int64_t row, int64_t col) {
  if (x.scales.empty()) return 1;
  const int64_t group = row / x.groups.height * x.groups.grid_cols(x.numbers.cols) + col / x.groups.width;
  return x.scales[static_cast<size_t>(group)].scale;
}

// Interleaves eight rows of b; rows past the end are zeros.
void gather_rows(const MatrixView& b, int64_t first, std::vector<float>& lanes) {
  std::fill(lanes.begin(), lanes.end(), 0.0F);
  for (int64_t lane = 0; lane < std::min(kLaneCount, b.rows - first); ++lane) {
    const float* row = b.data + (first + lane) * b.stride;
    for (int64_t k = 0; k < b.cols; ++k) lanes[static_cast<size_t>(k * kLaneCount + lane)] = row[k];
  }
}

// Whether the scale is constant along each row.
bool one_scale_a_row(const HopperOperand& x) {
  const auto cols = static_cast<size_t>(x.scales.empty() ? 1 : x.groups.grid_cols(x.numbers.cols));
  for (size_t i = 0; i < x.scales.size(); ++i) {
    if (OneLane::bits(x.scales[i].scale) != OneLane::bits(x.scales[i - i % cols].scale)) return false;
  }
  return true;
}

void check(const HopperOperand& a, const HopperOperand& b, bool promote) {
  RANKLAB_CHECK(a.numbers.cols == b.numbers.cols, ErrorKind::kInvalidArgument, .where = "hopper_gemm",
                .what = "the sides have different numbers of columns",
                .got = std::to_string(a.numbers.cols) + " and " + std::to_string(b.numbers.cols), .want = "as many");
  for (const HopperOperand* x : {&a, &b}) {
    const bool promoted = promote && x->groups.width % kPromotion == 0;
    RANKLAB_CHECK(
        promoted || one_scale_a_row(*x), ErrorKind::kInvalidArgument, .where = "hopper_gemm",
        .what = "a scale changes inside of a sum",
        .got = "groups of " + std::to_string(x->groups.width) + " columns" + (promote ? "" : " without promotion"),
        .want = "one scale a sum: groups of a multiple of 128 columns, promoted every 128, or whole rows",
        .fix = "use sum fp32 or hopper_promoted, or other groups");
  }
}

}  // namespace

void hopper_gemm(const HopperOperand& a, const HopperOperand& b, bool promote, float* out) {
  check(a, b, promote);
  const int64_t depth = a.numbers.cols, part = promote ? kPromotion : std::max<int64_t>(depth, 1);
  std::vector<float> lanes(static_cast<size_t>(depth * kLaneCount));
  for (int64_t first = 0; first < b.numbers.rows; first += kLaneCount) {
    gather_rows(b.numbers, first, lanes);
    const int64_t count = std::min(kLaneCount, b.numbers.rows - first);
    for (int64_t row = 0; row < a.numbers.rows; ++row) {
      float* to = out + row * b.numbers.rows + first;
      std::fill(to, to + count, 0.0F);
      for (int64_t k = 0; k < depth; k += part) {
        float sums[kLaneCount];
        sum_products(a.numbers.data + row * a.numbers.stride + k, lanes.data() + k * kLaneCount,
                     std::min(part, depth - k), sums);
        const float scale = scale_at(a, row, k);
        for (int64_t lane = 0; lane < count; ++lane) to[lane] += sums[lane] * (scale * scale_at(b, first + lane, k));
      }
    }
  }
}

void without_scales(const MatrixView& rounded, const GroupShape& groups, std::span<const BlockScale> scales,
                    const NumberFormat& format, float* out) {
  std::vector<BlockScale> inverse(scales.begin(), scales.end());
  for (BlockScale& scale : inverse) scale.scale = 1;
  quantize_dequantize(rounded, groups, inverse, format, nullptr, out);
}

}  // namespace ranklab
