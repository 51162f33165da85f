#include "lessons/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "core/base/numbers/philox.h"

namespace ranklab::lesson {
namespace {

double largest_difference(const NumberLists& lists, std::span<const double> from) {
  double most = 0;
  for (const std::vector<double>& list : lists)
    for (size_t i = 0; i < list.size(); ++i) {
      const double apart = std::abs(list[i] - from[i]);
      if (std::isnan(apart)) return apart;  // std::max would forget it
      most = std::max(most, apart);
    }
  return most;
}

}  // namespace

int different(const NumberLists& lists) {
  std::set<uint64_t> hashes;
  for (const std::vector<double>& list : lists) hashes.insert(hash_bytes(list.data(), list.size() * sizeof(double)));
  return static_cast<int>(hashes.size());
}

double spread(const NumberLists& lists) { return largest_difference(lists, lists.front()); }

double relative_error(const NumberLists& got, std::span<const double> want) {
  double scale = 0;
  for (const double number : want) scale = std::max(scale, std::abs(number));
  return largest_difference(got, want) / scale;
}

}  // namespace ranklab::lesson
