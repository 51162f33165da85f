// Lesson 10: quantization to 8 bits, and the scaling factor that makes values fit.
#pragma once
#include <cstdint>
#include <span>

namespace ranklab::lesson {

constexpr double kLargest = 448;         // of E4M3
constexpr double kSmallest = 1.0 / 512;  // of E4M3, above zero

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. How far the two numbers of E4M3 around x are apart, or, if x is one itself, it and the next one. REQUIRES:
// 0 < x < 448.
double apart(double x);
// The E4M3 number nearest to x; in a tie the one whose last bit is 0; beyond 448 that is 448.
double to_e4m3(double x);
// The fraction of the nonzero numbers that are +0 or -0 afterwards.
double underflow(std::span<const double> before, std::span<const double> after);
// The factor for this step's numbers: `amax` holds the largest magnitudes of the previous steps, the latest first.
double factor(std::span<const double> amax);
}
