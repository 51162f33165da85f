#include "core/pipeline/overlap.h"

#include "core/base/error.h"
#include "core/pipeline/verify.h"

namespace ranklab {
namespace {

bool may_pair(const Action& back, const Action& next) {
  return back.kind == ActionKind::kBW && next.kind == ActionKind::kF && back.microbatch != next.microbatch;
}

}  // namespace

Schedule overlap_neighbours(const Schedule& schedule) {
  Schedule out = schedule;
  int64_t pairs = 0;
  for (std::vector<Action>& actions : out.ranks) {
    std::vector<Action> paired;
    for (size_t i = 0; i < actions.size(); ++i) {
      if (i + 1 < actions.size() && may_pair(actions[i], actions[i + 1])) {
        const Action &back = actions[i], &next = actions[i + 1];
        paired.push_back(pair(next.stage, next.microbatch, back.stage, back.microbatch));
        ++i;
      } else {
        paired.push_back(actions[i]);
      }
      if (paired.back().kind == ActionKind::kFBW) ++pairs;
    }
    actions = std::move(paired);
  }
  RANKLAB_CHECK(pairs > 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--overlap-moe-expert-parallel-comm found no two microbatches to overlap",
                .got = schedule.name + " with " + std::to_string(schedule.num_microbatches) +
                       (schedule.num_microbatches == 1 ? " microbatch" : " microbatches"),
                .want = "--num-microbatches 2 or more, and a schedule with BW (not split into B and W)",
                .fix = "raise --num-microbatches, or leave the overlap out");
  require_sound(out);
  return out;
}

}  // namespace ranklab
