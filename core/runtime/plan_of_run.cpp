#include "core/runtime/plan_of_run.h"

namespace ranklab {

const RunPlan& PlanOfRun::on(RankContext& ctx) {
  ctx.tracer().set_enabled(false);  // not part of a step
  const DataCursor cursor = checkpoints_.start(ctx);
  if (ramp_reaches(given_, cursor)) return given_;
  const std::lock_guard lock(mutex_);
  if (!changed_) changed_ = plan_from(given_, cursor);
  return *changed_;
}

}  // namespace ranklab
