// Formats the times of schedules, whose unit is that of their costs; for a traced run, or a model on a machine, it is
// the microsecond. Thread rule: pure.
#pragma once
#include <cmath>
#include <string>

#include "core/base/text.h"

namespace ranklab {

// Prints this many significant digits, but always all digits before the point, never an exponent instead.
inline std::string plain_number(double value, int digits = 6) {
  return std::abs(value) < std::pow(10, digits) ? strprintf("%.*g", digits, value) : strprintf("%.0f", value);
}

inline std::string schedule_time(double value, bool microseconds, int digits = 6) {
  return microseconds ? human_ns(value * 1e3) : plain_number(value, digits);
}

}  // namespace ranklab
