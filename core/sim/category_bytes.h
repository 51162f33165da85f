// Bytes of a rank by category. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <numeric>

#include "core/base/vocabulary.h"

namespace ranklab {

using CategoryBytes = std::array<int64_t, static_cast<size_t>(MemoryCategory::kCount)>;
inline int64_t together(const CategoryBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }
inline CategoryBytes plus(CategoryBytes a, const CategoryBytes& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
inline CategoryBytes minus(CategoryBytes a, const CategoryBytes& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

}  // namespace ranklab
