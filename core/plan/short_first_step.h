// The first of two recorded steps only creates what stays, so it gets a single microbatch per chain of stages, as at
// the start of a growing batch; this halves the cost of a plan with thousands of microbatches. The second step is the
// same to the bit if all ranks meet between the two steps, in the norm of the gradients that are clipped (tests/plan
// checks that they are equal). They do meet, unless kernels that a rank launches meanwhile take longer than that
// exchange: then the last rank to arrive continues later than the others, and after a short step that may be a
// different rank. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

struct StepRecord;  // core/plan/step_record.h

// Whether the first step of this plan may be short.
bool may_begin_short(const RunPlan& plan);
// The plan with a short first step. REQUIRES: may_begin_short(), and a batch that does not grow.
RunPlan with_short_first_step(RunPlan plan);
// Whether, for each rank, the offset from the last rank is the same at the beginning of the recorded step as at its
// end, to a 2,000th of the step. If not, the first step left the ranks in a state that other steps do not produce.
bool has_steady_offsets(const StepRecord& record);

}  // namespace ranklab
