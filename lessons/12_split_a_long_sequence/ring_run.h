// The learner's ring against attention on one rank that has the whole sequence: one causal layer of two heads, fp64, on
// a laptop's virtual clock. A pair of a query and a key costs what flash attention's product costs; merging is free.
// Legend: H heads, S positions of a rank, D head dimension. Thread rule: one run at a time.
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
  double error = 0;             // of any rank's output, relative to the largest number wanted; infinite for NaN
  int64_t time_ns = 0;          // until the last rank was done
  int64_t hops_in_advance = 0;  // on all ranks: hop s was posted when block s began

  int64_t most_hops() const;  // that a rank sent
  int64_t most_bytes() const;
};
// REQUIRES: positions that are all held once.
RingRun run_ring(const Positions& positions, const Ring& ring, const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
