// What each stage of a pipeline costs on a machine, without a run: the stages' own code, recorded on shapes. Cost: four
// microbatches of the model on shapes. Thread rule: as record_step().
#pragma once
#include "core/pipeline/pipeline_costs.h"
#include "core/plan/record_step.h"

namespace ranklab {

// The costs of the stages of `plan.schedule`, whatever its order of actions.
PipelineCosts recorded_costs(const RunPlan& plan, const ShapeWorldMaker& make_world);

// Bytes of an activation or its gradient between two stages, for a microbatch on a rank.
int64_t boundary_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
