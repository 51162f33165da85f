#include "core/parallel/expert/token_spread.h"

#include <algorithm>
#include <numeric>

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

double chance_of_place(const MoeConfig& m, int64_t own) {
  const auto share = static_cast<double>(own) / static_cast<double>(m.num_experts);
  if (m.force_balance) return std::min(1.0, static_cast<double>((m.topk + own - 1) / own) * share);
  const bool limited = m.limits_groups();
  // If groups consist of such places, a token uses a place only together with its group; larger places contain whole
  // groups.
  if (limited && m.num_experts / m.num_groups % own == 0)
    return static_cast<double>(m.group_topk) / static_cast<double>(m.num_groups) *
           (1 - none_of(own, m.topk, m.num_experts / m.num_groups * m.group_topk));
  const double even = 1 - none_of(own, m.topk, m.num_experts);
  return limited ? std::min(even, static_cast<double>(m.group_topk) * share) : even;
}

double RowSpread::copies() const { return std::accumulate(chances.begin(), chances.end(), 0.0); }

std::vector<int64_t> RowSpread::parts(int64_t copies_of_all) const {
  const double all = copies();
  std::vector<int64_t> out;
  for (const double chance : chances)
    out.push_back(static_cast<int64_t>(static_cast<double>(copies_of_all) * (chance / all)));
  const int64_t left = copies_of_all - std::accumulate(out.begin(), out.end(), int64_t{0});
  for (int64_t i = 0; i < left; ++i) ++out[static_cast<size_t>(i) % out.size()];
  return out;
}

RowSpread spread_over_ranks(const MoeConfig& moe, int ranks) {
  RowSpread spread;
  for (int rank = 0; rank < ranks; ++rank) spread.add(rank, chance_of_place(moe, moe.num_experts / ranks));
  return spread;
}

}  // namespace ranklab
