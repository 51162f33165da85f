// What each stage of a pipeline costs on a machine, determined without a run by recording the stages' own code on
// shapes. Cost: four microbatches of the model on shapes. Thread rule: as for record_step().
#pragma once
#include "core/pipeline/pipeline_costs.h"
#include "core/plan/record_step.h"

namespace ranklab {

// The costs of the stages of `plan.schedule`; the order of its actions does not matter.
PipelineCosts recorded_costs(const RunPlan& plan, const ShapeWorldMaker& make_world);

// Bytes of one activation, or of its gradient, between two stages, per microbatch and rank.
int64_t boundary_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
