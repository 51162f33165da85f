#include "core/plan/step_shape.h"

namespace ranklab {

StepShape shape_of(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  return {.model = c.model,
          .dims = plan.mesh.dims(),
          .sequence_parallel = plan.sequence_parallel,
          .micro_batch_size = plan.micro_batch_size,
          .num_microbatches = plan.num_microbatches,
          .bucket_bytes = plan.bucket_bytes,
          .dtype = c.params_dtype == "fp64" ? DType::kFloat64 : DType::kFloat32,
          .overlap_grad_reduce = c.overlap_grad_reduce,
          .clips = c.clip_grad > 0,
          .optimizer = c.optimizer,
          .chain_length = plan.schedule.chain_length,
          .stage_layers = plan.stage_layers,
          .moe_dispatcher = c.moe_dispatcher};
}

}  // namespace ranklab
