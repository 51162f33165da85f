// Lesson 10, solution. A number's neighbours are 1/8 of its power of two apart, and never closer than 1/512.
#include "exercise.h"

#include <algorithm>
#include <cmath>

using namespace ranklab::lesson;

extern "C" double apart(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);  // x is at least 2 ^ (exponent - 1)
  return std::max(std::ldexp(1.0, exponent - 1 - 3), kSmallest);
}

extern "C" double to_e4m3(double x) {
  if (std::abs(x) > kLargest) return std::copysign(kLargest, x);
  return std::min(std::nearbyint(x / apart(x)) * apart(x), kLargest);
}

extern "C" double underflow(std::span<const double> before, std::span<const double> after) {
  double lost = 0, nonzero = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == 0) continue;
    ++nonzero;
    if (after[i] == 0) ++lost;  // -0 equals 0
  }
  return nonzero > 0 ? lost / nonzero : 0;
}

extern "C" double factor(std::span<const double> amax) {
  const double most = amax.empty() ? 0 : *std::max_element(amax.begin(), amax.end());
  return most > 0 ? kLargest / most : 1;
}
