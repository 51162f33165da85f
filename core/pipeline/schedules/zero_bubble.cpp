#include "core/pipeline/schedules/zero_bubble.h"

#include <algorithm>

#include "core/pipeline/schedules/placement.h"

namespace ranklab {

Schedule zero_bubble(std::string name, const ScheduleRequest& request, const std::function<int(int rank)>& warmup,
                     const std::function<int(int rank)>& delay) {
  Schedule schedule = looped(std::move(name), request, 1);
  const int m = request.num_microbatches;
  for (int rank = 0; rank < request.num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    int forwarded = 0, weighed = 0;
    while (forwarded < std::min(warmup(rank), m)) actions.push_back(forward(rank, forwarded++));
    for (int done = 0; done < m; ++done) {
      actions.push_back(input_grad(rank, done));
      if (done >= delay(rank)) actions.push_back(weight_grad(rank, weighed++));
      if (forwarded < m) actions.push_back(forward(rank, forwarded++));
    }
    while (weighed < m) actions.push_back(weight_grad(rank, weighed++));
  }
  return schedule;
}

}  // namespace ranklab
