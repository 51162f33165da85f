#include "core/plan/type_check.h"

#include "core/plan/replay.h"
#include "core/runtime/engine.h"
#include "core/runtime/shapes/built_rank.h"

namespace ranklab {

std::shared_ptr<const TypeReport> types_of_step(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  const RunPlan typed = plan_on_shapes(plan);
  const auto report = std::make_shared<TypeReport>();
  RuntimeEngine engine(with_repeated_passes(on_shapes(default_parts(), make_world(first_stand_ins(typed)))), typed);
  engine.set_type_report(report);
  engine.fit(1);
  return report;
}

}  // namespace ranklab
