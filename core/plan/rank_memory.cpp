#include "core/plan/rank_memory.h"

#include "core/plan/planned_parameters.h"

namespace ranklab {
namespace {

int optimizer_copies(const TrainConfig& c) {
  if (c.optimizer == OptimizerKind::kAdamW) return 2;
  return c.sgd_momentum > 0 ? 1 : 0;
}

}  // namespace

RankMemory rank_memory(const RunPlan& plan, int pp_rank) {
  const StepShape shape = shape_of(plan);
  RankMemory out{.pp_rank = pp_rank, .activations = estimate_activations(shape, plan.schedule, pp_rank)};
  for (const PlannedParameter& parameter : planned_parameters(shape, plan.schedule, pp_rank))
    out.parameters += parameter.elements * shape.element_bytes();
  out.gradients = out.parameters;
  out.optimizer = out.parameters * optimizer_copies(plan.config);
  return out;
}

RankMemory fullest_rank(const RunPlan& plan) {
  RankMemory fullest = rank_memory(plan, 0);
  for (int rank = 1; rank < plan.mesh.size(Axis::kPp); ++rank) {
    const RankMemory other = rank_memory(plan, rank);
    if (other.together() > fullest.together()) fullest = other;
  }
  return fullest;
}

}  // namespace ranklab
