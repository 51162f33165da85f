// Lesson 14: which tensor went wrong first, and which sum is missing.
#pragma once
#include <cstddef>
#include <span>

namespace ranklab::lesson {

// A tensor of a run beside the same tensor of one rank.
struct Tensor {
  const char* name;
  double epsilons;  // how far it is from the reference's: of the rank that is furthest
  double allowed;   // how far rounding may bring it
};

// Where a rank is, and its gradient of one element.
struct RankGradient {
  int tp, dp;    // its coordinates
  double own;    // what it has added up itself, before any reduction
  double there;  // what it has after the reductions of the step
};

enum class MissingSum { kNone, kTp, kDp };

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. tensors: in causal order, each depends on those before it alone. RETURNS: the index of the one where the bug
// is; tensors.size() where nothing is wrong.
size_t first_wrong(std::span<const ranklab::lesson::Tensor> tensors);
// ranks: those that have the element; over dp, and where it is a norm's over tp (sequence parallelism), they have seen
// other tokens. right: the gradient on one rank. Which sum has not been made?
ranklab::lesson::MissingSum missing_sum(std::span<const ranklab::lesson::RankGradient> ranks, double right);
}
