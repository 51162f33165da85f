// Times of schedules have whatever unit their costs have; of a traced run, or a model on a machine, they are
// microseconds. Thread rule: pure.
#pragma once
#include <cmath>
#include <string>

#include "core/base/text.h"

namespace ranklab {

// With so many digits, or all of them before the point: never an exponent in place of them.
inline std::string plain_number(double value, int digits = 6) {
  return std::abs(value) < std::pow(10, digits) ? strprintf("%.*g", digits, value) : strprintf("%.0f", value);
}

inline std::string schedule_time(double value, bool microseconds, int digits = 6) {
  return microseconds ? human_ns(value * 1e3) : plain_number(value, digits);
}

}  // namespace ranklab
