// The learner's ring compared with attention on one rank that has the whole sequence: one causal layer with two heads,
// fp64, on a laptop's virtual clock. A pair of a query and a key costs as much as flash attention's products; merging
// is free. Legend: H heads, S positions of a rank, D head dimension. Thread rule: one run at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "lessons/12_split_a_long_sequence/exercise.h"
#include "lessons/12_split_a_long_sequence/positions.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int64_t kRingHeads = 2, kRingHeadDim = 16;

using Ring = std::function<void(Comm&, const Part&, Partial&)>;
Ring straight_ring();

struct RingRun {
  std::vector<RankRecord> records;
  double error = 0;             // of any rank's output, relative to the largest expected number; infinite for NaN
  int64_t time_ns = 0;          // until the last rank was done
  int64_t hops_in_advance = 0;  // on all ranks: hops s that were posted when block s began

  int64_t most_hops() const;  // the largest number that a rank sent
  int64_t most_bytes() const;
};
// REQUIRES: each position is held by exactly one rank.
RingRun run_ring(const Positions& positions, const Ring& ring, const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
