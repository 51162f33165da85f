// Checks the types of a run's tensors (core/spmd) through a step on shapes: a missing, doubled or misplaced reduction
// is reported before anything is computed, for any number of ranks. One rank per pipeline rank runs. Cost: one step,
// run as in record_step(). Thread rule: the thread that would train.
#pragma once
#include <memory>

#include "core/plan/record_step.h"
#include "core/spmd/type_report.h"

namespace ranklab {

// Throws what a rank of the run throws.
std::shared_ptr<const TypeReport> types_of_step(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
