// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473): v stages per rank; p microbatches pass through one stage
// before the next one begins. The bubble is 1F1B's divided by v, at the cost of v times the messages and a little more
// memory.
#include <algorithm>

#include "core/base/error.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"

namespace ranklab {

Schedule make_interleaved_1f1b(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  const int p = request.num_ranks, m = request.num_microbatches, v = request.num_chunks;
  RANKLAB_CHECK(
      m % p == 0 || v == 1, ErrorKind::kInvalidArgument, .where = "schedule interleaved-1f1b",
      .what = "the number of microbatches is not a multiple of the pipeline ranks",
      .got = std::to_string(m) + " microbatches, " + std::to_string(p) + " ranks",
      .want = m < p ? std::to_string(p) : std::to_string(m / p * p) + " or " + std::to_string((m / p + 1) * p),
      .fix = "change --num-microbatches, or use looped-bfs, which takes any number");
  Schedule schedule = looped("interleaved-1f1b", request, v);
  const int total = m * v;
  for (int rank = 0; rank < p; ++rank) {
    // The k-th forward (or backward): groups of p microbatches pass through the rank's stages one after another (or in
    // reverse).
    const auto nth = [&](int k, bool reverse) {
      const int chunk = k / p % v;
      const int microbatch = k / (p * v) * p + k % p;
      return std::pair{(reverse ? v - 1 - chunk : chunk) * p + rank, microbatch};
    };
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const int warmup = v == 1 ? std::min(p - rank - 1, total) : std::min(2 * (p - rank - 1) + (v - 1) * p, total);
    int next = 0;
    const auto push_forward = [&] {
      const auto [stage, microbatch] = v == 1 ? std::pair{rank, next} : nth(next, false);
      actions.push_back(forward(stage, microbatch));
      ++next;
    };
    while (next < warmup) push_forward();
    for (int done = 0; done < total; ++done) {
      if (next < total) push_forward();
      const auto [stage, microbatch] = v == 1 ? std::pair{rank, done} : nth(done, true);
      actions.push_back(backward(stage, microbatch));
    }
  }
  return schedule;
}

}  // namespace ranklab
