// 1F1B, PipeDream-Flush (Narayanan et al., arXiv 2006.09503, 2104.04473): just enough forwards to fill the pipeline,
// then alternately one backward and one forward. The bubble of GPipe, but rank i holds only min(m, p-i) activations.
#include <algorithm>

#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"
#include "core/pipeline/schedules/warmup.h"

namespace ranklab {

Schedule make_1f1b(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  Schedule schedule = looped("1f1b", request, 1);
  const int m = request.num_microbatches;
  for (int rank = 0; rank < request.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const int warmup = std::min(one_stage_warmup(request, rank), m);
    int next = 0;
    while (next < warmup) actions.push_back(forward(rank, next++));
    for (int done = 0; done < m; ++done) {
      if (next < m) actions.push_back(forward(rank, next++));
      actions.push_back(backward(rank, done));
    }
  }
  return schedule;
}

}  // namespace ranklab
