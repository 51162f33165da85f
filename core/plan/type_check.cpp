#include "core/plan/type_check.h"

#include "core/plan/built_rank.h"
#include "core/plan/replay.h"
#include "core/runtime/engine.h"

namespace ranklab {

std::shared_ptr<const TypeReport> types_of_step(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  RunPlan typed = plan_to_record(plan);
  typed.config.trace = false;
  const auto report = std::make_shared<TypeReport>();
  RuntimeEngine engine(with_repeated_passes(on_shapes(default_parts(), make_world(first_stand_ins(typed)))), typed);
  engine.set_type_report(report);
  engine.fit(1);
  return report;
}

}  // namespace ranklab
