// GPipe (Huang et al., arXiv 1811.06965): all forwards, then all backwards. Bubble (p-1)(F+B+W); every activation is
// held at once.
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"

namespace ranklab {

Schedule make_gpipe(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  Schedule schedule = looped("gpipe", request, 1);
  for (int rank = 0; rank < request.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    for (int i = 0; i < request.num_microbatches; ++i) actions.push_back(forward(rank, i));
    for (int i = 0; i < request.num_microbatches; ++i) actions.push_back(backward(rank, i));
  }
  return schedule;
}

}  // namespace ranklab
