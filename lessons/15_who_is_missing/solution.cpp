// Lesson 15, solution. From any rank that waits to a peer that has not come to its call, and on from there: the chain
// ends at a rank that waits for nobody.
#include "exercise.h"

#include <cstddef>

using namespace ranklab::lesson;

extern "C" bool has_come(const StuckRank& rank, int group, int call) {
  return rank.made[static_cast<size_t>(group)] >= call;
}

extern "C" int missing_rank(std::span<const StuckRank> ranks, std::span<const GroupOfRanks> groups) {
  int here = 0;
  for (size_t hops = 0; hops < ranks.size(); ++hops) {
    const StuckRank& rank = ranks[static_cast<size_t>(here)];
    if (rank.waits_in < 0) return here;
    const auto group = static_cast<size_t>(rank.waits_in);
    for (const int peer : groups[group].members) {
      if (has_come(ranks[static_cast<size_t>(peer)], rank.waits_in, rank.made[group])) continue;
      here = peer;
      break;
    }
  }
  return here;
}
