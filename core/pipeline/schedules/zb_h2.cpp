// ZB-H2 (Qi et al., arXiv 2401.10241): twice the warm-up and twice the memory of ZB-H1; the bubble is (p-1)(F+B-2W).
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/zero_bubble.h"

namespace ranklab {

Schedule make_zb_h2(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  const int p = request.num_ranks;
  return zero_bubble(
      "zb-h2", request, [p](int rank) { return 2 * (p - rank) - 1; }, [](int rank) { return 2 * rank; });
}

}  // namespace ranklab
