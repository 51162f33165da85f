// Lesson 10: numbers in 8 bits, and the factor that makes them fit.
#pragma once
#include <cstdint>
#include <span>

namespace ranklab::lesson {

constexpr double kLargest = 448;         // of E4M3
constexpr double kSmallest = 1.0 / 512;  // of E4M3, above zero

}  // namespace ranklab::lesson

extern "C" {
// The E4M3 number nearest to x; of two that are equally near the one whose last bit is 0; beyond 448 that is 448.
double to_e4m3(double x);
// The share of the numbers that were not zero and are, +0 or -0, afterwards.
double underflow(std::span<const double> before, std::span<const double> after);
// The factor for this step's numbers: `amax` are the largest magnitudes of the steps before, the latest first.
double factor(std::span<const double> amax);
}
