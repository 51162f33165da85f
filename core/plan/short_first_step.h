// The first of two recorded steps only creates what stays, so it has one microbatch for each chain of stages, as where
// the batch grows: half of what a plan with thousands of microbatches would cost. The second step is the same to the
// bit where all ranks meet between them, in the norm of the gradients that are clipped (tests/plan holds them equal).
// They do unless kernels that a rank launches meanwhile take longer than that exchange: then the last rank to come goes
// on later than the others, and after a short step that may be another one. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

struct StepRecord;  // core/plan/step_record.h

// Whether the first step of this plan may be short.
bool may_begin_short(const RunPlan& plan);
// The plan with such a first step. REQUIRES: may_begin_short(), a batch that does not grow.
RunPlan with_short_first_step(RunPlan plan);
// Whether each rank began the recorded step as long before the last one as it ended it, to a 2,000th of the step. If
// not, the first step left the ranks as no other one does.
bool begins_as_it_ends(const StepRecord& record);

}  // namespace ranklab
