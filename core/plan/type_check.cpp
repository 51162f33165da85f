#include "core/plan/type_check.h"

#include <utility>
#include <vector>

#include "core/plan/built_rank.h"
#include "core/plan/replay.h"
#include "core/runtime/engine.h"

namespace ranklab {
namespace {

// The first rank of each stage runs for the others.
std::vector<int> first_ranks(const DeviceMesh& mesh) {
  std::vector<int> first(static_cast<size_t>(mesh.size(Axis::kPp)), -1), stand_in;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    int& of_stage = first[static_cast<size_t>(mesh.coordinate(Axis::kPp, rank))];
    if (of_stage < 0) of_stage = rank;
    stand_in.push_back(of_stage);
  }
  return stand_in;
}

}  // namespace

std::shared_ptr<const TypeReport> types_of_step(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  RunPlan typed = plan_to_record(plan);
  typed.config.trace = false;
  const auto report = std::make_shared<TypeReport>();
  RuntimeEngine engine(with_repeated_passes(on_shapes(default_parts(), make_world(first_ranks(typed.mesh)))), typed);
  engine.set_type_report(report);
  engine.fit(1);
  return report;
}

std::string first_named(const TypeReport& report) {
  const std::vector<TypeFinding> findings = report.findings();
  return findings.empty() ? "" : findings[0].module + ", " + std::string(name(findings[0].axis));
}

}  // namespace ranklab
