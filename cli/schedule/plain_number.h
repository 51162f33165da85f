// Times of schedules have whatever unit their costs have; of a model on a machine they are microseconds, of which a
// step has millions. Thread rule: pure.
#pragma once
#include <cmath>
#include <string>

#include "core/base/text.h"

namespace ranklab {

// With so many digits, or all of them before the point: never an exponent in place of them.
inline std::string plain_number(double value, int digits = 6) {
  return std::abs(value) < std::pow(10, digits) ? strprintf("%.*g", digits, value) : strprintf("%.0f", value);
}

}  // namespace ranklab
