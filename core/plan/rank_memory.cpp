#include "core/plan/rank_memory.h"

#include "core/plan/owned_share.h"
#include "core/plan/planned_parameters.h"
#include "core/plan/zero_map.h"

namespace ranklab {
RankMemory rank_memory(const RunPlan& plan, int pp_rank) {
  const StepShape shape = shape_of(plan);
  RankMemory out{.pp_rank = pp_rank, .activations = estimate_activations(shape, plan.schedule, pp_rank)};
  const std::vector<PlannedParameter> parameters = planned_parameters(shape, plan.schedule, pp_rank);
  const StateTypes types = shape.state();
  int64_t elements = 0;
  for (const PlannedParameter& parameter : parameters) elements += parameter.elements;
  out.parameters = elements * types.param_bytes();
  const std::vector<PlannedBucket> buckets = planned_buckets(shape, parameters);
  out.gradients = shape.zero_stage >= 2 ? peak_gradient_bytes(shape, buckets) : elements * types.grad_bytes();
  out.optimizer = largest_share(buckets).elements * types.optimizer_bytes();
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
