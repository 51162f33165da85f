// ZB-H1 (Qi et al., arXiv 2401.10241): 1F1B's memory, with a bubble of only (p-1)(F+B-W).
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/zero_bubble.h"

namespace ranklab {

Schedule make_zb_h1(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  const int p = request.num_ranks;
  return zero_bubble(
      "zb-h1", request, [p](int rank) { return p - rank; }, [](int rank) { return rank; });
}

}  // namespace ranklab
