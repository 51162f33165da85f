#include "core/plan/step_shape.h"

#include <algorithm>

#include "core/precision/precision_policy.h"
#include "core/runtime/loss_scale_choice.h"
#include "core/runtime/recompute_choice.h"

namespace ranklab {

namespace {

void add_precision(StepShape& shape, const PrecisionPolicy& policy) {
  shape.dispatch = policy.recipe().dispatch;
  shape.gather = policy.recipe().gather;
  for (const ModulePrecision& module : policy.modules()) {
    if (!module.linear.quantized()) continue;
    shape.quantized_modules.push_back(module.module);
    if (module.module == "head") {
      shape.head_quantized = true;
    } else {
      shape.products = module.linear;
    }
  }
}

}  // namespace

StepShape shape_of(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  StepShape shape{.model = c.model,
                  .dims = plan.mesh.dims(),
                  .sequence_parallel = plan.sequence_parallel,
                  .micro_batch_size = plan.micro_batch_size,
                  .num_microbatches = plan.num_microbatches,
                  .bucket_bytes = plan.bucket_bytes,
                  .dtype = c.element_dtype(),
                  .overlap_grad_reduce = c.overlap_grad_reduce,
                  .zero_stage = plan.zero_stage,
                  .clips = c.clip_grad > 0,
                  .optimizer = c.optimizer,
                  .states = state_types(plan),
                  .loss_scaled = loss_scale_rule(c).has_value(),
                  .chain_length = plan.schedule.chain_length,
                  .stage_layers = plan.stage_layers,
                  .moe_dispatcher = c.moe_dispatcher,
                  .recompute = recompute_policy(c)};
  if (plan.precision) add_precision(shape, *plan.precision);
  place_experts(shape, plan.mesh, c.gpus_per_node > 0 ? c.gpus_per_node : plan.profile.gpus_per_node);
  return shape;
}

void place_experts(StepShape& shape, const DeviceMesh& mesh, int gpus_per_node) {
  if (shape.dims.ep == 1) return;
  const std::vector<int> ranks = mesh.group(Axis::kEp, 0).global_ranks;
  shape.ep_in_node = static_cast<int>(std::count_if(
      ranks.begin(), ranks.end(), [&](int rank) { return rank / gpus_per_node == ranks.front() / gpus_per_node; }));
}

}  // namespace ranklab
