// DualPipeV: DualPipe cut in half (Qi et al., "DualPipe could be better without the Dual", 2025; DeepSeek's DualPipe
// repository). Rank r holds stages r and 2p-1-r; a microbatch goes down one side and up the other.
#include "core/base/error.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/dualpipe_steps.h"
#include "core/pipeline/schedules/placement.h"

namespace ranklab {

Schedule make_dualpipe_v(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  const int p = request.num_ranks, m = request.num_microbatches;
  RANKLAB_CHECK(m >= 2 * p, ErrorKind::kInvalidArgument, .where = "schedule dualpipe-v",
                .what = "there are fewer than two microbatches for each rank",
                .got = std::to_string(m) + " microbatches, " + std::to_string(p) + " ranks",
                .want = std::to_string(2 * p) + " or more", .fix = "raise --num-microbatches, or use zb-v");
  Schedule schedule = v_shaped("dualpipe-v", request);
  for (int rank = 0; rank < p; ++rank) {
    schedule.ranks[static_cast<size_t>(rank)] = dualpipe_actions(
        {.from_outside = rank, .half = p, .count = m, .stage = {rank, 2 * p - 1 - rank}, .first_microbatch = {0, 0}});
  }
  return schedule;
}

}  // namespace ranklab
