// Lesson 16, solution. A rank is slow beside those that have the same work, its own stage; a stage that has more work
// than others is no slow device, and who waits is not slow at all.
#include "exercise.h"

#include <algorithm>
#include <cstddef>
#include <vector>

using namespace ranklab::lesson;

extern "C" double usual_time(std::span<const RankTime> ranks, int stage) {
  std::vector<double> times;
  for (const RankTime& rank : ranks)
    if (rank.stage == stage) times.push_back(rank.computes);
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) / 2];
}

extern "C" int slow_rank(std::span<const RankTime> ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].computes > 1.3 * usual_time(ranks, ranks[rank].stage)) return static_cast<int>(rank);
  return -1;
}
