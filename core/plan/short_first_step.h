// The first of two recorded steps only creates what stays, so it has one microbatch for each chain of stages: half of
// what a plan with thousands of microbatches would cost. The second step is the same to the bit where all ranks meet
// between them, in the norm of the gradients that are clipped (tests/plan holds them equal). They do unless kernels
// that a rank launches meanwhile take longer than that exchange: then the last rank to come goes on later than the
// others, and after a short step that may be another one. Thread rule: pure.
#pragma once
#include <memory>

#include "core/config/train_config.h"

namespace ranklab {

class ScheduleSelector;  // core/runtime/components.h
struct StepRecord;       // core/plan/step_record.h

// Whether the first step of this plan may be short.
bool may_begin_short(const RunPlan& plan);
// One microbatch through each chain of the stages, one after the other.
Schedule shortest_schedule(const Schedule& of);
// Whether each rank began the recorded step as long before the last one as it ended it, to a 2,000th of the step. If
// not, the first step left the ranks as no other one does.
bool begins_as_it_ends(const StepRecord& record);
// REQUIRES: may_begin_short().
std::shared_ptr<ScheduleSelector> with_short_first_step(std::shared_ptr<ScheduleSelector> selector);

}  // namespace ranklab
