// The distance from 1 to the next larger number of a floating-point type. Thread rule: pure.
#pragma once
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>

namespace ranklab {

inline double epsilon_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Double:
      return 0x1p-52;
    case c10::ScalarType::Float:
      return 0x1p-23;
    case c10::ScalarType::Half:
      return 0x1p-10;
    case c10::ScalarType::BFloat16:
      return 0x1p-7;
    default:
      return 0;
  }
}

// About how many numbers of the type lie between `a` and `b`: their difference in units in the last place of the larger
// one.
inline double units_apart(double a, double b, double epsilon) {
  const double larger = std::max(std::abs(a), std::abs(b));
  return larger > 0 ? std::abs(a - b) / std::ldexp(epsilon, std::ilogb(larger)) : 0;
}

}  // namespace ranklab
