// Lesson 17, exercise: find the step in which copies of weights stop being equal.
//
// The check trains on eight ranks, tp 2 x pp 2 x dp 2, with historical bugs and without any, and gives you the hashes
// of every rank's weights at the beginning of each step.
//
// The code below compares every rank with rank 0, so that a healthy run looks broken.
//
// Check with:  ./ranklab lesson check 17
#include "exercise.h"

#include <cstddef>

using namespace ranklab::lesson;

// ---- your turn: both functions ----

// Which ranks have other layers, which have another part of a matrix?
extern "C" bool must_equal([[maybe_unused]] const RankHashes& a, [[maybe_unused]] const RankHashes& b,
                           [[maybe_unused]] bool split) {
  return true;
}

// Compare those that must be equal, of both kinds of parameters.
extern "C" int first_drift(std::span<const StepHashes> steps) {
  for (size_t step = 0; step < steps.size(); ++step)
    for (const RankHashes& rank : steps[step])
      if (rank.whole != steps[step][0].whole) return static_cast<int>(step);
  return -1;
}

// ---- end of your turn ----
