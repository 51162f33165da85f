// Lesson 14, exercise: find the tensor that went wrong first, and name the mesh axis whose sum is missing.
//
// The check trains one step on 8 ranks, tp 4 x dp 2, with historical bugs and without any, and compares every tensor
// with one rank's. It gives you what it has found: all tensors in causal order, and one element of the first wrong
// gradient as every rank has it.
//
// The code below blames the tensor that is furthest off, and never names an axis.
//
// Check with:  ./ranklab lesson check 14
#include "exercise.h"

#include <cmath>

using namespace ranklab::lesson;

// Whether two numbers differ only by rounding.
[[maybe_unused]] static bool same(double a, double b) { return std::abs(a - b) <= 1e-4 * (std::abs(a) + std::abs(b)); }

// ---- your turn: both functions ----

// The largest difference is not where the bug is.
extern "C" size_t first_wrong(std::span<const Tensor> tensors) {
  size_t worst = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].epsilons > tensors[worst].epsilons) worst = i;
  return worst;
}

// Over which ranks must `own` be added to give what is there, and over which to give `right`?
extern "C" MissingSum missing_sum([[maybe_unused]] std::span<const RankGradient> ranks, [[maybe_unused]] double right) {
  return MissingSum::kNone;
}

// ---- end of your turn ----
