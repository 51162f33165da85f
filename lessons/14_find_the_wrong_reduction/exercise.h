// Lesson 14: which tensor went wrong first, and which sum is missing.
#pragma once
#include <cstddef>
#include <span>

namespace ranklab::lesson {

// A tensor of a run compared with the same tensor of one rank.
struct Tensor {
  const char* name;
  double epsilons;  // distance from the reference, on the rank that is furthest off
  double allowed;   // tolerance: the distance that rounding can explain
};

// A rank's coordinates and its gradient of one element.
struct RankGradient {
  int tp, dp;    // its coordinates
  double own;    // what it has accumulated itself, before any reduction
  double there;  // what it has after the reductions of the step
};

enum class MissingSum { kNone, kTp, kDp };

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. tensors: in causal order, each depends only on those before it. RETURNS: the index of the one with the bug,
// or tensors.size() if nothing is wrong.
size_t first_wrong(std::span<const ranklab::lesson::Tensor> tensors);
// ranks: those that have the element. Over dp, and for a norm also over tp (sequence parallelism), they have seen
// different tokens. right: the gradient on one rank. Which sum is missing?
ranklab::lesson::MissingSum missing_sum(std::span<const ranklab::lesson::RankGradient> ranks, double right);
}
