// Compares two traces: count and duration per operation, steps pairwise in order, memory peaks. The first steps present
// in both traces (by position, not number) are compared, so a longer run does not look slower. If the numbers of ranks
// differ, counts and durations are averages per rank, and memory is that of the fullest rank, so more ranks do not look
// slower either. Comparing a trace with itself gives zero everywhere. Cost: O(n log n). Thread rule: pure.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {

// The count and duration of an operation in one of the traces.
struct OpSide {
  double count = 0, total_ns = 0;  // sums over ranks, or means of them
  double mean_ns() const { return count > 0 ? total_ns / count : 0; }
};

struct OpDiff {
  std::string name;  // "F", "all_reduce tp"
  OpSide a, b;
  int64_t delta_ns() const { return std::llround(b.total_ns - a.total_ns); }
  double delta_share() const;  // relative to a's total: 0.1 is 10 % more; infinity if only b has it
};

struct ValueDiff {
  std::string name;  // "step 3", "step 3 and 10" (of each side), "peak memory r0"
  double a = 0, b = 0;
  double delta() const { return b - a; }
  double delta_share() const;
};

struct TraceDiff {
  int steps = 0;  // number of pairs of steps compared; 0: there are no steps, so the whole traces are compared
  std::vector<OpDiff> ops;         // by |delta|, largest first
  std::vector<ValueDiff> step_ns;  // duration of each pair of steps
  std::vector<ValueDiff> memory;   // peak bytes of each rank that both have, or of the fullest rank
  ValueDiff makespan;              // of the compared part
  std::vector<std::string> notes;  // how the traces differ, and what is compared in that case
  bool of_a_rank = false;          // counts and durations are means per rank
  bool same() const;               // every delta is zero and there are no notes
  double worst_share() const;      // largest |delta share| of makespan, steps and memory: used by --fail-over
};

TraceDiff diff_traces(const TraceStore& a, const TraceStore& b);

// The time to add to A's to get B's, where both begin the same: the step of A in the middle of the visible range and
// its counterpart; or the whole traces, if the beginning of A is visible or that step has no counterpart.
int64_t time_between(const TraceStore& a, const TraceStore& b, TimeRange seen);

}  // namespace ranklab::viz
