// The scale of a group from its amax, as block_scale() computes it, with everything common to a tensor's groups
// precomputed: a few operations per group, on CPU and GPU alike. Torch-free. Thread rule: pure.
#pragma once
#include "core/precision/rounding_grid.h"

namespace ranklab {

struct ScaleMaker {
  enum class Rule { kFp32, kUp, kFloor, kE4M3 };
  Rule rule = Rule::kFp32;
  float largest = 0;              // of the format
  int32_t largest_exponent = 0;   // floor(log2 largest)
  uint32_t largest_mantissa = 0;  // its lower 23 bits
  int32_t least_exponent = 0;     // of the scale
  float whole = 1;                // kE4M3: the tensor-wide factor of the groups' scales
  RoundingGrid scales = {};       // kE4M3: the grid of E4M3
};

constexpr int32_t kFloatBias = 127;
constexpr uint32_t kFloatNan = 0x7fc00000;

RANKLAB_EVERYWHERE float smallest_normal_float() { return OneLane::number(1U << kFloatMantissaBits); }

// 2^exponent for exponents of E8M0, from -127 to 127.
RANKLAB_EVERYWHERE float power_of_two(int32_t exponent) {
  const int32_t biased = exponent + kFloatBias;
  return OneLane::number(biased > 0 ? static_cast<uint32_t>(biased) << kFloatMantissaBits
                                    : 1U << (kFloatMantissaBits - 1));
}

// The factor by which numbers are multiplied before they are rounded; 0: the group is all zero, or its scale is
// unknown.
RANKLAB_EVERYWHERE float inverse_scale(float scale) { return scale == 0 ? 0.0F : 1 / scale; }

// The exponent of a scale that is a power of two. REQUIRES: amax is finite and above zero.
RANKLAB_EVERYWHERE int32_t scale_exponent(const ScaleMaker& maker, float amax) {
  constexpr uint32_t kMantissa = (1U << kFloatMantissaBits) - 1;
  // Subnormal magnitudes are treated as 2^-127, whose exponent is below every scale's as well.
  const uint32_t carry = maker.rule == ScaleMaker::Rule::kUp ? kMantissa - maker.largest_mantissa : 0;
  const auto biased = static_cast<int32_t>((OneLane::bits(amax) + carry) >> kFloatMantissaBits);
  const int32_t exponent = biased - kFloatBias - maker.largest_exponent;
  return exponent > maker.least_exponent ? exponent : maker.least_exponent;
}

// kE4M3: the part that is stored in E4M3.
template <typename Lanes>
RANKLAB_EVERYWHERE typename Lanes::Float relative_scale(const ScaleMaker& maker, typename Lanes::Float amax) {
  return round_nearest<Lanes>(maker.scales, amax / (maker.largest * maker.whole));
}

RANKLAB_EVERYWHERE float make_scale(const ScaleMaker& maker, float amax) {
  const float whole_finite = maker.whole - maker.whole;  // NaN if the tensor-wide scale is not finite
  if (OneLane::bits(amax) >= kFloatExponent || whole_finite != 0) return OneLane::number(kFloatNan);
  if (amax == 0) return 1;
  switch (maker.rule) {
    case ScaleMaker::Rule::kUp:
    case ScaleMaker::Rule::kFloor:
      return power_of_two(scale_exponent(maker, amax));
    case ScaleMaker::Rule::kE4M3:
      return relative_scale<OneLane>(maker, amax) * maker.whole;
    case ScaleMaker::Rule::kFp32:
      break;
  }
  const float scale = amax / maker.largest;
  return scale > smallest_normal_float() ? scale : smallest_normal_float();
}

// kE4M3: the tensor-wide factor of the groups' scales, from the tensor's amax. At least 2^-117, so that the smallest
// E4M3 scale times it still has a finite inverse.
RANKLAB_EVERYWHERE float whole_scale(const ScaleMaker& maker, float tensor_amax) {
  if (tensor_amax == 0) return 1;
  const float scale = tensor_amax / (maker.largest * maker.scales.largest);
  const float least = OneLane::number(10U << kFloatMantissaBits);
  return scale < least ? least : scale;
}

// A group's scale as a byte: powers of two in E8M0 (255: NaN), for kE4M3 its E4M3 part.
RANKLAB_EVERYWHERE uint8_t e8m0_scale_code(const ScaleMaker& maker, float amax) {
  const float scale = make_scale(maker, amax);
  if (!(scale < OneLane::number(kFloatExponent))) return 255;
  return static_cast<uint8_t>(amax == 0 ? kFloatBias : scale_exponent(maker, amax) + kFloatBias);
}
RANKLAB_EVERYWHERE uint8_t e4m3_scale_code(const ScaleMaker& maker, float amax) {
  const float scale = make_scale(maker, amax);
  const float relative = scale < OneLane::number(kFloatExponent) ? relative_scale<OneLane>(maker, amax) : scale;
  return static_cast<uint8_t>(code_of_rounded<OneLane>(maker.scales, relative));
}

}  // namespace ranklab
