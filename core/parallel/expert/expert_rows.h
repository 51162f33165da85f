// Loops over rows that are sorted by expert. Thread rule: pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranklab {

// Calls `visit(expert, begin, count)` with the rows [begin, begin + count) of each expert that has some.
template <typename Visit>
void for_each_expert(const std::vector<int64_t>& counts, const Visit& visit) {
  int64_t begin = 0;
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    if (counts[expert] > 0) visit(expert, begin, counts[expert]);
    begin += counts[expert];
  }
}

}  // namespace ranklab
