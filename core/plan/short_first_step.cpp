#include "core/plan/short_first_step.h"

#include <algorithm>
#include <cstdlib>

#include "core/plan/replay.h"
#include "core/plan/step_record.h"

namespace ranklab {
namespace {

bool splits(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::find(actions, ActionKind::kW, &Action::kind) != actions.end();
  });
}

}  // namespace

bool may_begin_short(const RunPlan& plan) {
  const bool ranks_meet = plan.mesh.size(Axis::kPp) == 1 || plan.config.clip_grad > 0;
  return ranks_meet && microbatches_in_order(plan) && plan.schedule.num_microbatches > plan.schedule.num_chains();
}

RunPlan with_short_first_step(RunPlan plan) {
  Schedule first = plan.schedule;
  first.num_microbatches = first.num_chains();
  first.ranks.assign(first.ranks.size(), {});
  // If backwards are split, what stays between B and W is thus known from the first pass.
  for (int chain = 0; chain < first.num_chains(); ++chain) add_alone(first, chain, chain, splits(plan.schedule));
  const int64_t whole = plan.config.global_batch_size;
  const int64_t start = whole / plan.schedule.num_microbatches * first.num_microbatches;
  plan.ramp = {.whole = whole, .start = start, .increment = whole - start, .samples = 1};
  plan.ramp_schedules = {{first.num_microbatches, first}};
  return plan;
}

bool has_steady_offsets(const StepRecord& record) {
  constexpr int64_t kShare = 2000;
  const int64_t last_begin = record.latest(&RankTime::begin_ns), last_end = record.latest(&RankTime::end_ns);
  return std::ranges::all_of(record.ranks, [&](const RankRecord& rank) {
    const int64_t before = last_begin - rank.time.begin_ns, after = last_end - rank.time.end_ns;
    return std::abs(before - after) <= record.step_ns / kShare;
  });
}

}  // namespace ranklab
