// Lesson 14, solution. Every tensor behind the bug is wrong, too, and grows: the first beyond its tolerance is the
// culprit. A sum over an axis is missing where what a rank has is the sum over the other axis alone, and that is not
// the right value.
#include "exercise.h"

#include <cmath>

using namespace ranklab::lesson;

static bool same(double a, double b) { return std::abs(a - b) <= 1e-4 * (std::abs(a) + std::abs(b)); }

// The sum over the ranks with the same coordinate on the other axis.
static double sum_over(std::span<const RankGradient> ranks, const RankGradient& here, bool over_tp) {
  double sum = 0;
  for (const RankGradient& other : ranks)
    if (over_tp ? other.dp == here.dp : other.tp == here.tp) sum += other.own;
  return sum;
}

extern "C" size_t first_wrong(std::span<const Tensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].epsilons > tensors[i].allowed) return i;
  return tensors.size();
}

extern "C" MissingSum missing_sum(std::span<const RankGradient> ranks, double right) {
  bool only_tp = true, only_dp = true, all_right = true;
  for (const RankGradient& rank : ranks) {
    all_right = all_right && same(rank.there, right);
    only_tp = only_tp && same(rank.there, sum_over(ranks, rank, true));
    only_dp = only_dp && same(rank.there, sum_over(ranks, rank, false));
  }
  if (all_right) return MissingSum::kNone;
  return only_dp ? MissingSum::kTp : only_tp ? MissingSum::kDp : MissingSum::kNone;
}
