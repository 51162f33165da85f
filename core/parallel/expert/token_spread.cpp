#include "core/parallel/expert/token_spread.h"

#include <algorithm>
#include <cmath>

namespace ranklab {
namespace {

// The probability that none of `chosen` out of `all` experts is among `some`.
double none_of(int64_t some, int64_t chosen, int64_t all) {
  double chance = 1;
  for (int64_t i = 0; i < chosen; ++i)
    chance *= static_cast<double>(std::max<int64_t>(0, all - some - i)) / static_cast<double>(all - i);
  return chance;
}

}  // namespace

double expected_places(const MoeConfig& m, int64_t places) {
  const int64_t each = m.num_experts / places;
  if (m.force_balance) return static_cast<double>(std::clamp<int64_t>((m.topk + each - 1) / each, 1, places));
  const bool limited = m.group_topk < m.num_groups;
  // If a place is at most a group, a token's groups cover `within` places; larger places contain whole groups.
  if (limited && places % m.num_groups == 0) {
    const int64_t within = places / m.num_groups * m.group_topk;
    return static_cast<double>(within) * (1 - none_of(each, m.topk, each * within));
  }
  const double even = static_cast<double>(places) * (1 - none_of(each, m.topk, m.num_experts));
  return limited ? std::min(even, static_cast<double>(m.group_topk)) : even;
}

std::vector<int64_t> even_parts(int64_t count, int64_t parts) {
  std::vector<int64_t> out(static_cast<size_t>(parts), count / parts);
  for (int64_t i = 0; i < count % parts; ++i) ++out[static_cast<size_t>(i)];
  return out;
}

EvenSpread spread_over_ranks(const MoeConfig& moe, int ranks) {
  EvenSpread spread{.copies = expected_places(moe, ranks)};
  for (int rank = 0; rank < ranks; ++rank) spread.places.push_back(rank);
  return spread;
}

}  // namespace ranklab
