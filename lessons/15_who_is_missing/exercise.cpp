// Lesson 15, exercise: find the rank that never came to a collective, in a run where everybody waits.
//
// This is what a flight recorder has when the watchdog ends a run: for each rank, how many calls it has made in each
// group, and in which it is stuck. The check stops eight ranks, tp 2 x dp 2 x pp 2, at several places.
//
// The code below blames the first rank that waits: it is a victim.
//
// Check with:  ./ranklab lesson check 15
#include "exercise.h"

#include <cstddef>

using namespace ranklab::lesson;

// ---- your turn: both functions ----

extern "C" bool has_come([[maybe_unused]] const StuckRank& rank, [[maybe_unused]] int group,
                         [[maybe_unused]] int call) {
  return true;
}

// A rank that waits has peers; which of them has not come, and for whom does that one wait?
extern "C" int missing_rank(std::span<const StuckRank> ranks, [[maybe_unused]] std::span<const GroupOfRanks> groups) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].waits_in >= 0) return static_cast<int>(rank);
  return -1;
}

// ---- end of your turn ----
