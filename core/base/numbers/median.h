// The median of a list of numbers. Thread rule: pure.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace ranklab {

// For an even count, the upper of the two middle values. REQUIRES: not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace ranklab
