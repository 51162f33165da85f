// Lesson 16, exercise: find the rank whose device is slow, from the times of a step.
//
// The check runs steps of eight ranks, pp 2 x dp 4, on the virtual clock: with a slow rank, with a stage that has more
// work than the other, with both, and with neither.
//
// The code below blames the rank that waits most. Nobody waits for that rank.
//
// Check with:  ./ranklab lesson check 16
#include "exercise.h"

#include <algorithm>
#include <cstddef>
#include <vector>

using namespace ranklab::lesson;

// ---- your turn: both functions ----

extern "C" double usual_time([[maybe_unused]] std::span<const RankTime> ranks, [[maybe_unused]] int stage) { return 0; }

// Slow compared with whom?
extern "C" int slow_rank(std::span<const RankTime> ranks) {
  const auto most = std::max_element(ranks.begin(), ranks.end(),
                                     [](const RankTime& a, const RankTime& b) { return a.waits < b.waits; });
  return static_cast<int>(most - ranks.begin());
}

// ---- end of your turn ----
