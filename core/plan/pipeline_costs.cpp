#include "core/plan/pipeline_costs.h"

#include "core/plan/stage_walk.h"
#include "core/plan/step_clock.h"

namespace ranklab {
namespace {

// Microseconds that the walk takes.
template <typename Walk>
double timed(const StepClock& clock, const StepShape& shape, int part, Walk walk) {
  StepClock own = clock;
  UnitWalk units(planned_buckets(shape, planned_parameters(shape, part)), own);
  StageWalk stage(shape, part, own, {}, &units);
  (stage.*walk)();
  return (own.now() - clock.now()) * 1e-3;
}

}  // namespace

ScheduleCosts mean_of_rank(const PipelineCosts& costs, double ranks) {
  ScheduleCosts mean{.f = 0, .b = 0, .w = 0, .c = costs.c};
  for (const StageCost& stage : costs.stages) {
    mean.f += stage.f / ranks;
    mean.b += stage.b / ranks;
    mean.w += stage.w / ranks;
  }
  return mean;
}

PipelineCosts pipeline_costs(const StepShape& shape, const Schedule& schedule, const DeviceMesh& mesh,
                             const HardwareProfile& profile, int gpus_per_node) {
  StepClock clock(shape, mesh, profile, gpus_per_node > 0 ? gpus_per_node : profile.gpus_per_node);
  std::vector<StageCost> parts;
  for (int part = 0; part < schedule.chain_length; ++part) {
    parts.push_back({.f = timed(clock, shape, part, &StageWalk::forward),
                     .b = timed(clock, shape, part, &StageWalk::input_grad),
                     .w = timed(clock, shape, part, &StageWalk::weight_grad),
                     .bw = timed(clock, shape, part, &StageWalk::backward)});
  }
  PipelineCosts costs;
  for (int stage = 0; stage < schedule.num_stages(); ++stage)
    costs.stages.push_back(parts[static_cast<size_t>(schedule.part(stage))]);
  if (schedule.num_ranks() > 1) costs.c = clock.message_ns(shape.boundary_bytes()) * 1e-3;
  costs.mean = mean_of_rank(costs, schedule.num_ranks() * schedule.num_chains());
  return costs;
}

}  // namespace ranklab
