// The schedules of the learning rate and of weight decay that a run's settings describe. Thread rule: pure functions.
#pragma once
#include "core/config/train_config.h"
#include "core/optim/lr_schedule.h"
#include "core/optim/weight_decay_schedule.h"

namespace ranklab {

LrSchedule lr_schedule_of(const TrainConfig& config);
// The same for a run whose batches may continue to grow from where a checkpoint left off (BatchRamp::first_step).
LrSchedule lr_schedule_of(const TrainConfig& config, const BatchRamp& ramp);

// Fills lr_warmup_iters, or in a run of --train-samples lr_warmup_samples, with its default and checks the schedule.
// Throws kInvalidArgument naming the flags that contradict each other.
void settle_learning_rate(TrainConfig& config);

WeightDecaySchedule weight_decay_schedule_of(const TrainConfig& config, const BatchRamp& ramp);
// Throws kInvalidArgument where weight decay changes over time and its start or end value is missing.
void check_weight_decay(const TrainConfig& config);

}  // namespace ranklab
