#include "core/precision/block_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/precision/recipe.h"

namespace ranklab {
namespace {

constexpr int kLeastExponent = -127;  // of E8M0
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

BlockScale of(float scale) { return {scale, inverse_scale(scale)}; }
BlockScale of_exponent(int exponent) { return of(std::ldexp(1.0F, exponent)); }

// floor(log2 x), exact.
int floor_log2(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent - 1;
}

int ceil_log2(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5 ? exponent - 1 : exponent;
}

ScaleMaker::Rule rule_of(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::kPowerOfTwo:
    case ScaleRule::kE8M0Up:
      return ScaleMaker::Rule::kUp;
    case ScaleRule::kE8M0:
      return ScaleMaker::Rule::kFloor;
    case ScaleRule::kE4M3:
      return ScaleMaker::Rule::kE4M3;
    case ScaleRule::kFp32:
    case ScaleRule::kDelayedFp32:
      break;
  }
  return ScaleMaker::Rule::kFp32;
}

}  // namespace

float tensor_scale(const TensorPrecision& precision, float tensor_amax) {
  return whole_scale(scale_maker(precision, 0), tensor_amax);
}

BlockScale block_scale(const TensorPrecision& precision, float amax, float tensor_amax) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const bool relative = precision.scale == ScaleRule::kE4M3;
  if (!std::isfinite(amax) || (relative && !std::isfinite(tensor_amax))) return {kNan, kNan};
  if (amax == 0) return {};
  const auto largest = static_cast<float>(precision.format->largest());
  const double ratio = static_cast<double>(amax) / largest;
  switch (precision.scale) {
    case ScaleRule::kFp32:
    case ScaleRule::kDelayedFp32:
      return of(std::max(amax / largest, kSmallestNormal));
    case ScaleRule::kPowerOfTwo:
      return of_exponent(std::max(ceil_log2(ratio), kLeastExponent + 1));
    case ScaleRule::kE8M0Up:
      return of_exponent(std::max(ceil_log2(ratio), kLeastExponent));
    case ScaleRule::kE8M0:
      return of_exponent(std::max(floor_log2(amax) - floor_log2(largest), kLeastExponent));
    case ScaleRule::kE4M3: {
      const float whole = tensor_scale(precision, tensor_amax);
      return of(static_cast<float>(decode(*e4m3(), encode(*e4m3(), amax / (largest * whole)))) * whole);
    }
  }
  return {};
}

RoundingGrid rounding_grid(const NumberFormat& format) {
  return {.largest = static_cast<float>(format.largest()),
          .smallest_normal_bits = OneLane::bits(static_cast<float>(format.smallest_normal())),
          .mantissa_bits = static_cast<uint32_t>(format.mantissa_bits),
          .code_bits = static_cast<uint32_t>(format.bits())};
}

ScaleMaker scale_maker(const TensorPrecision& precision, float tensor_amax) {
  const auto largest = static_cast<float>(precision.format->largest());
  ScaleMaker maker{.rule = rule_of(precision.scale),
                   .largest = largest,
                   .largest_exponent = floor_log2(largest),
                   .largest_mantissa = OneLane::bits(largest) & ((1U << kFloatMantissaBits) - 1),
                   .least_exponent = precision.scale == ScaleRule::kPowerOfTwo ? kLeastExponent + 1 : kLeastExponent,
                   .scales = rounding_grid(*e4m3())};
  if (maker.rule == ScaleMaker::Rule::kE4M3) maker.whole = whole_scale(maker, tensor_amax);
  return maker;
}

}  // namespace ranklab
