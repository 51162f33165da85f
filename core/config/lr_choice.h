// The learning-rate schedule that a run's settings describe. Thread rule: pure functions.
#pragma once
#include "core/config/train_config.h"
#include "core/optim/lr_schedule.h"

namespace ranklab {

LrSchedule lr_schedule_of(const TrainConfig& config);
// ... of a run whose batches may go on growing from a checkpoint's (BatchRamp::first_step).
LrSchedule lr_schedule_of(const TrainConfig& config, const BatchRamp& ramp);

// Fills lr_warmup_iters with its default and checks the schedule. Throws kInvalidArgument naming the flags that
// contradict each other.
void settle_learning_rate(TrainConfig& config);

}  // namespace ranklab
