// Looped breadth-first (Lamy-Poirier, arXiv 2211.05953): v stages per rank; each runs all microbatches before the next
// one starts. It needs GPipe's memory, and its bubble is v times smaller.
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"

namespace ranklab {

Schedule make_looped_bfs(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  Schedule schedule = looped("looped-bfs", request, request.num_chunks);
  for (int rank = 0; rank < request.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const std::vector<int> stages = schedule.stages_of(rank);
    for (const int stage : stages)
      for (int i = 0; i < request.num_microbatches; ++i) actions.push_back(forward(stage, i));
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
      for (int i = 0; i < request.num_microbatches; ++i) actions.push_back(backward(*stage, i));
  }
  return schedule;
}

}  // namespace ranklab
