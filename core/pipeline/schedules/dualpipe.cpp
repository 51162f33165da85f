// DualPipe (DeepSeek-AI, arXiv 2412.19437): microbatches enter at both ends of the pipeline, so that forwards of one
// direction overlap backwards of the other. Bubble (p/2-1)(F&B + BW - 3W) when F = B = W; every rank holds two stages'
// weights.
#include "core/base/error.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/dualpipe_steps.h"

namespace ranklab {

Schedule make_dualpipe(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  const int p = request.num_ranks, m = request.num_microbatches;
  RANKLAB_CHECK(p % 2 == 0, ErrorKind::kInvalidArgument, .where = "schedule dualpipe",
                .what = "an odd number of pipeline ranks has no middle", .got = std::to_string(p) + " ranks",
                .want = std::to_string(p - 1) + " or " + std::to_string(p + 1),
                .fix = "change --pp, or use dualpipe-v");
  RANKLAB_CHECK(
      m % 2 == 0 && m >= 2 * p, ErrorKind::kInvalidArgument, .where = "schedule dualpipe",
      .what = "each direction needs as many microbatches as there are ranks",
      .got = std::to_string(m) + " microbatches, " + std::to_string(p) + " ranks",
      .want = m < 2 * p ? std::to_string(2 * p) + " or more" : std::to_string(m - 1) + " or " + std::to_string(m + 1),
      .fix = "change --num-microbatches");
  Schedule schedule{"dualpipe", m, {}, p, {}};
  for (int stage = 0; stage < p; ++stage) schedule.rank_of_stage.push_back(stage);
  for (int stage = 0; stage < p; ++stage) schedule.rank_of_stage.push_back(p - 1 - stage);
  for (int rank = 0; rank < p; ++rank) {
    const bool lower = rank < p / 2;
    // Stream 0 is the one that enters at this rank's end of the pipeline.
    const int down = rank, up = p + (p - 1 - rank);
    schedule.ranks.push_back(dualpipe_actions({.from_outside = lower ? rank : p - 1 - rank,
                                               .half = p / 2,
                                               .count = m / 2,
                                               .stage = {lower ? down : up, lower ? up : down},
                                               .first_microbatch = {lower ? 0 : m / 2, lower ? m / 2 : 0}}));
  }
  return schedule;
}

}  // namespace ranklab
