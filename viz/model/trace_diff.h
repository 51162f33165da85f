// Compares two traces: count and duration per operation, steps pairwise in order, memory peaks. The first steps present
// in both traces (by position, not number) are compared, so a longer run does not look slower. Where the numbers of
// ranks differ, counts and durations are those of a rank on average, and memory that of the fullest rank, so more ranks
// do not look slower either. Comparing a trace with itself gives zero everywhere. Cost: O(n log n). Thread rule: pure.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {

// What an operation took on one side.
struct OpSide {
  double count = 0, total_ns = 0;  // sums over ranks, or means of them
  double mean_ns() const { return count > 0 ? total_ns / count : 0; }
};

struct OpDiff {
  std::string name;  // "F", "all_reduce tp"
  OpSide a, b;
  int64_t delta_ns() const { return std::llround(b.total_ns - a.total_ns); }
  double delta_share() const;  // of a's total: 0.1 is 10 % more; infinity when only b has it
};

struct ValueDiff {
  std::string name;  // "step 3", "step 3 and 10" (of each side), "peak memory r0"
  double a = 0, b = 0;
  double delta() const { return b - a; }
  double delta_share() const;
};

struct TraceDiff {
  int steps = 0;                   // pairs of steps compared; 0: no steps, so the whole traces
  std::vector<OpDiff> ops;         // by |delta|, largest first
  std::vector<ValueDiff> step_ns;  // duration of each pair of steps
  std::vector<ValueDiff> memory;   // peak bytes of each rank that both have, or of the fullest rank
  ValueDiff makespan;              // of what is compared
  std::vector<std::string> notes;  // in what the traces differ, and what is compared then
  bool of_a_rank = false;          // counts and durations are means of a rank
  bool same() const;               // every delta is zero and there are no notes
  double worst_share() const;      // largest |delta share| of makespan, steps and memory: used by --fail-over
};

TraceDiff diff_traces(const TraceStore& a, const TraceStore& b);

// B's time less A's where both begin the same: the step of A in the middle of what is seen and its pair. The traces
// themselves where the beginning of A is seen, and where that step has no pair.
int64_t time_between(const TraceStore& a, const TraceStore& b, TimeRange seen);

}  // namespace ranklab::viz
