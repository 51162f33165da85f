// Lesson 17, solution. Ranks of other pipeline stages have other layers. Within a stage replicas have the same weights;
// tp ranks share what is not split.
#include "exercise.h"

#include <cstddef>

using namespace ranklab::lesson;

extern "C" bool must_equal(const RankHashes& a, const RankHashes& b, bool split) {
  if (a.pp != b.pp) return false;
  return !split || a.tp == b.tp;
}

extern "C" int first_drift(std::span<const StepHashes> steps) {
  for (size_t step = 0; step < steps.size(); ++step)
    for (const RankHashes& a : steps[step])
      for (const RankHashes& b : steps[step]) {
        if (must_equal(a, b, false) && a.whole != b.whole) return static_cast<int>(step);
        if (must_equal(a, b, true) && a.split != b.split) return static_cast<int>(step);
      }
  return -1;
}
