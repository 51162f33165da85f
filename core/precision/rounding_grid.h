// Rounds numbers to a format with only additions and masks, so that the same code runs on scalars, vectors and a GPU.
// The trick: adding and subtracting 2^k rounds to multiples of 2^(k - 23), to nearest with ties to even, by IEEE 754
// addition; k follows from the number's exponent. Equal to encode() and decode() of number_format.h with saturation,
// except that NaN stays NaN in every format. Torch-free. Cost: about ten operations. REQUIRES: default floating-point
// environment, no fused multiply-add. Thread rule: pure.
#pragma once
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define RANKLAB_EVERYWHERE __host__ __device__ __forceinline__
#else
#define RANKLAB_EVERYWHERE inline __attribute__((always_inline))
#endif

namespace ranklab {

// The constants of a number format that rounding uses.
struct RoundingGrid {
  float largest = 0;
  uint32_t smallest_normal_bits = 0;
  uint32_t mantissa_bits = 0;
  uint32_t code_bits = 0;
};

constexpr uint32_t kFloatMantissaBits = 23;
constexpr uint32_t kFloatExponent = 0x7f800000, kFloatSign = 0x80000000;

// A single number; vectors have the same members (VectorLanes, vector_lanes.h).
struct OneLane {
  using Float = float;
  using Bits = uint32_t;
  static RANKLAB_EVERYWHERE Bits bits(Float x) {
    Bits result;
    std::memcpy(&result, &x, sizeof result);
    return result;
  }
  static RANKLAB_EVERYWHERE Float number(Bits x) {
    Float result;
    std::memcpy(&result, &x, sizeof result);
    return result;
  }
  // REQUIRES: x < 2^24.
  static RANKLAB_EVERYWHERE Float converted(Bits x) { return static_cast<Float>(x); }
};

// The magnitude, clamped to the largest; NaN stays NaN.
template <typename Lanes>
RANKLAB_EVERYWHERE typename Lanes::Float clamped_size(const RoundingGrid& grid, typename Lanes::Float x) {
  const typename Lanes::Float size = Lanes::number(Lanes::bits(x) & ~kFloatSign);
  const typename Lanes::Float largest = typename Lanes::Float{} + grid.largest;
  return size > largest ? largest : size;
}

// The largest power of two at or below a magnitude, at least the smallest normal number; as bits.
template <typename Lanes>
RANKLAB_EVERYWHERE typename Lanes::Bits power_bits(const RoundingGrid& grid, typename Lanes::Float size) {
  const typename Lanes::Bits power = Lanes::bits(size) & kFloatExponent;
  const typename Lanes::Bits least = typename Lanes::Bits{} + grid.smallest_normal_bits;
  return power > least ? power : least;
}

// To nearest, ties to even.
template <typename Lanes>
RANKLAB_EVERYWHERE typename Lanes::Float round_nearest(const RoundingGrid& grid, typename Lanes::Float x) {
  const typename Lanes::Float size = clamped_size<Lanes>(grid, x);
  const typename Lanes::Bits shift =
      power_bits<Lanes>(grid, size) + ((kFloatMantissaBits - grid.mantissa_bits) << kFloatMantissaBits);
  const typename Lanes::Float magic = Lanes::number(shift);
  return Lanes::number(Lanes::bits((size + magic) - magic) | (Lanes::bits(x) & kFloatSign));
}

// Rounds up if the upper 24 random bits, as a fraction, are below the relative distance from the lower neighbour.
template <typename Lanes>
RANKLAB_EVERYWHERE typename Lanes::Float round_stochastic(const RoundingGrid& grid, typename Lanes::Float x,
                                                          typename Lanes::Bits random) {
  const typename Lanes::Float size = clamped_size<Lanes>(grid, x);
  const typename Lanes::Bits power = power_bits<Lanes>(grid, size);
  const typename Lanes::Float magic =
      Lanes::number(power + ((kFloatMantissaBits - grid.mantissa_bits) << kFloatMantissaBits));
  const typename Lanes::Float step = Lanes::number(power - (grid.mantissa_bits << kFloatMantissaBits));
  const typename Lanes::Float none{}, near = (size + magic) - magic;
  const typename Lanes::Float below = near - (near > size ? step : none);
  const typename Lanes::Float chance = Lanes::converted(random >> 8) * 0x1p-24F;
  const typename Lanes::Float rounded = below + (chance * step < size - below ? step : none);
  return Lanes::number(Lanes::bits(rounded) | (Lanes::bits(x) & kFloatSign));
}

// The code of a number that the format represents exactly; NaN gets all bits below the sign, which is NaN in the
// formats that have one.
template <typename Lanes>
RANKLAB_EVERYWHERE typename Lanes::Bits code_of_rounded(const RoundingGrid& grid, typename Lanes::Float x) {
  using Bits = typename Lanes::Bits;
  const Bits size = Lanes::bits(x) & ~kFloatSign, sign = (Lanes::bits(x) & kFloatSign) >> (32 - grid.code_bits);
  const uint32_t shift = kFloatMantissaBits - grid.mantissa_bits;
  const uint32_t magic = grid.smallest_normal_bits + (shift << kFloatMantissaBits);
  // Below the smallest normal number codes count multiples of the smallest number; above it they are a float's shifted
  // bits.
  const Bits subnormal = Lanes::bits(Lanes::number(size) + Lanes::number(Bits{} + magic)) - magic;
  const Bits normal = (size - (grid.smallest_normal_bits - (1U << kFloatMantissaBits))) >> shift;
  const Bits number = size < grid.smallest_normal_bits ? subnormal : normal;
  return (size > kFloatExponent ? Bits{} + ((1U << (grid.code_bits - 1)) - 1) : number) | sign;
}

}  // namespace ranklab
