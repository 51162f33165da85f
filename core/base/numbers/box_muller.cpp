// Logarithm, sine and cosine as polynomials (those of Sun's fdlibm, accurate to one unit in fp64's last place) in loops
// that the compiler vectorizes. Their results may differ from the math library's in the last bits of fp64, but round to
// the same fp32 number unless they lie next to a rounding boundary; those cases are left to the library.
#include "core/base/numbers/box_muller.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "core/base/vector_clones.h"

namespace ranklab {
namespace {

constexpr uint64_t kFractionBits = 52;
constexpr uint64_t kFraction = (uint64_t{1} << kFractionBits) - 1;

constexpr RANKLAB_INLINE uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
constexpr RANKLAB_INLINE double number_of(uint64_t bits) { return std::bit_cast<double>(bits); }
// Converts a whole number below 2^52 to double without a conversion instruction, which AVX2 does not have.
RANKLAB_INLINE double whole(uint64_t x) { return number_of(x | bits_of(0x1p52)) - 0x1p52; }
// 1 where x < limit, for both below 2^63.
RANKLAB_INLINE uint64_t less(uint64_t x, uint64_t limit) { return (x - limit) >> 63; }

// log(x / 2^32) for whole x from 1 to 2^32: with x = 2^k (1 + f) and s = f / (2 + f), a polynomial of s^2.
RANKLAB_INLINE double log_of_uniform(double x) {
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  // Brings 1 + f between sqrt(1/2) and sqrt(2): the exponent is one higher where the fraction exceeds that of sqrt(2).
  constexpr uint64_t kUp = (uint64_t{1} << kFractionBits) - (bits_of(std::numbers::sqrt2) & kFraction);
  const uint64_t moved = bits_of(x) + kUp;
  const double k = whole(moved >> kFractionBits) - (1023 + 32);
  const double f = number_of((moved & kFraction) + bits_of(1.0) - kUp) - 1;
  const double s = f / (2 + f), z = s * s, w = z * z;
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd =
      z * (6.666666666666735130e-01 +
           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half_square = 0.5 * f * f;
  return k * kLn2High - ((half_square - (s * (half_square + even + odd) + k * kLn2Low)) - f);
}

// REQUIRES: |r| <= pi/4.
RANKLAB_INLINE double short_sin(double r) {
  const double z = r * r;
  return r + r * z *
                 (-1.66666666666666324348e-01 +
                  z * (8.33333333332248946124e-03 +
                       z * (-1.98412698298579493134e-04 +
                            z * (2.75573137070700676789e-06 +
                                 z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
}
RANKLAB_INLINE double short_cos(double r) {
  const double z = r * r;
  const double tail = z * z *
                      (4.16666666666666019037e-02 +
                       z * (-1.38888888888741095749e-03 +
                            z * (2.48015872894767294178e-05 +
                                 z * (-2.75573143513906633035e-07 +
                                      z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  return 1 - (0.5 * z - tail);
}

// 1 where x lies within 32 units in fp64's last place of the midpoint between two fp32 numbers.
RANKLAB_INLINE uint64_t rounding_unsure(double x) {
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1, kMiddle = uint64_t{1} << 28, kNear = 32;
  return less((bits_of(x) + kMiddle + kNear) & kDropped, 2 * kNear + 1);
}

// RETURNS: whether the rounding of some pair is unsure.
RANKLAB_CLONES bool fast_pairs(const uint32_t* words, float* normals) {
  // The angle as box_muller() rounds it, less quarter turns: pi/2 in two parts, whose multiples up to 4 are exact.
  constexpr double kQuarterHigh = 0x1.921fb544p+0, kQuarterLow = 0x1.0b4611a626331p-34;
  constexpr double kSmall = 0x1p-20;  // so close to a quarter turn, the rounding of the low part itself would show
  uint64_t unsure = 0;
  for (size_t i = 0; i < kNormalsAtOnce / 2; ++i) {
    const uint64_t a = words[2 * i], b = words[2 * i + 1];
    const double radius = std::sqrt(-2.0 * log_of_uniform(whole(a) + 1));
    const double angle = 2.0 * std::numbers::pi * (whole(b) * 0x1.0p-32);
    const uint64_t quarters = (b + (uint64_t{1} << 29)) >> 30;
    const double r = (angle - whole(quarters) * kQuarterHigh) - whole(quarters) * kQuarterLow;
    const uint64_t cos = bits_of(short_cos(r)), sin = bits_of(short_sin(r)), swap = 0 - (quarters & 1);
    const double x = radius * number_of(((cos & ~swap) | (sin & swap)) ^ (((quarters + 1) >> 1) << 63));
    const double y = radius * number_of(((sin & ~swap) | (cos & swap)) ^ ((quarters >> 1) << 63));
    normals[2 * i] = static_cast<float>(x);
    normals[2 * i + 1] = static_cast<float>(y);
    unsure |= rounding_unsure(x) | rounding_unsure(y) | less(bits_of(std::abs(r)), bits_of(kSmall));
  }
  return unsure != 0;
}

}  // namespace

std::array<float, 2> box_muller(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 1.0) * 0x1.0p-32;  // (0, 1]
  const double v = static_cast<double>(b) * 0x1.0p-32;
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * v;
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

void box_muller_pairs(const uint32_t (&words)[kNormalsAtOnce], float (&normals)[kNormalsAtOnce]) {
  if (!fast_pairs(words, normals)) return;
  for (size_t i = 0; i < kNormalsAtOnce; i += 2) {
    const auto pair = box_muller(words[i], words[i + 1]);
    normals[i] = pair[0];
    normals[i + 1] = pair[1];
  }
}

}  // namespace ranklab
