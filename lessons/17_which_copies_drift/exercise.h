// Lesson 17: copies of weights that must stay equal, and do not.
#pragma once
#include <span>

namespace ranklab::lesson {

// A rank's weights at the beginning of a step, as hashes: equal numbers have equal hashes, others have others.
struct RankHashes {
  int tp, dp, pp;            // its coordinates
  unsigned long long whole;  // of the parameters that every tp rank has whole: norms
  unsigned long long split;  // of those of which a tp rank has its part: matrices
};

// All ranks, at the beginning of a step.
using StepHashes = std::span<const RankHashes>;

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. Whether two ranks must have the same weights: of the parameters that tp splits, or of the others.
bool must_equal(const ranklab::lesson::RankHashes& a, const ranklab::lesson::RankHashes& b, bool split);
// steps: of a run, from step 0. RETURNS: the first at whose beginning weights differ that must not; -1: none.
int first_drift(std::span<const ranklab::lesson::StepHashes> steps);
}
