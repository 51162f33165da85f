// Lesson 17: copies of weights that must stay equal, and do not.
#pragma once
#include <span>

namespace ranklab::lesson {

// A rank's weights at the beginning of a step, as hashes: equal weights have equal hashes, different ones do not.
struct RankHashes {
  int tp, dp, pp;            // its coordinates
  unsigned long long whole;  // of the parameters that every tp rank has whole: norms
  unsigned long long split;  // of the parameters that tp splits: matrices
};

// All ranks, at the beginning of a step.
using StepHashes = std::span<const RankHashes>;

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. Whether two ranks must have the same weights, for the parameters that tp splits or for the others.
bool must_equal(const ranklab::lesson::RankHashes& a, const ranklab::lesson::RankHashes& b, bool split);
// steps: of a run, from step 0. RETURNS: the first step that begins with unequal copies; -1: none.
int first_drift(std::span<const ranklab::lesson::StepHashes> steps);
}
