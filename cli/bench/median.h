#pragma once
#include <algorithm>
#include <vector>

namespace ranklab {

// The upper one of an even count. REQUIRES: not empty.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace ranklab
