#include "core/config/lr_choice.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

namespace {

LrSchedule schedule_in_steps(const TrainConfig& c) {
  const int64_t decay = c.lr_decay_iters > 0 ? c.lr_decay_iters : c.train_iters;
  const double part = c.lr_warmup_fraction;
  return {.kind = c.lr_decay,
          .max_lr = c.lr,
          .min_lr = c.min_lr,
          .warmup_init = c.lr_warmup_init,
          .warmup_steps = part >= 0 ? part * static_cast<double>(decay) : static_cast<double>(c.lr_warmup_iters),
          .decay_steps = decay,
          .wsd_decay_steps = c.lr_wsd_decay_iters > 0 ? c.lr_wsd_decay_iters : std::max<int64_t>(decay / 10, 1),
          .wsd_decay = c.lr_wsd_decay};
}

// What is given in steps is as many sequences as those steps have.
void count_sequences(LrSchedule& schedule, const BatchRamp& ramp, const TrainConfig& c) {
  const int64_t stable_steps = schedule.decay_steps - c.lr_wsd_decay_iters;
  const bool whole_run = c.lr_decay_iters == 0 && c.train_samples > 0;
  const int64_t decay = whole_run ? c.train_samples : ramp.samples_before(schedule.decay_steps);
  const double part = c.lr_warmup_fraction;
  schedule.warmup_steps = part >= 0 ? part * static_cast<double>(decay)
                                    : static_cast<double>(ramp.samples_before(std::max<int64_t>(c.lr_warmup_iters, 0)));
  schedule.wsd_decay_steps =
      c.lr_wsd_decay_iters > 0 ? decay - ramp.samples_before(stable_steps) : std::max<int64_t>(decay / 10, 1);
  schedule.decay_steps = decay;
  schedule.ramp = ramp;
}

}  // namespace

LrSchedule lr_schedule_of(const TrainConfig& c) {
  return lr_schedule_of(c, BatchRamp::parse(c.rampup_batch_size, c.global_batch_size));
}

LrSchedule lr_schedule_of(const TrainConfig& c, const BatchRamp& ramp) {
  LrSchedule schedule = schedule_in_steps(c);
  if (ramp.grows()) count_sequences(schedule, ramp, c);
  return schedule;
}

void settle_learning_rate(TrainConfig& c) {
  const double part = c.lr_warmup_fraction;
  RANKLAB_CHECK(part == -1 || (part >= 0 && part < 1), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--lr-warmup-fraction is out of range", .got = strprintf("--lr-warmup-fraction %g", part),
                .want = "0 or more and below 1, or -1 (by --lr-warmup-iters)",
                .fix = "pass the part of the decay's steps that warms up, as 0.01");
  RANKLAB_CHECK(part < 0 || c.lr_warmup_iters < 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--lr-warmup-iters and --lr-warmup-fraction contradict each other",
                .got = strprintf("--lr-warmup-iters %lld, --lr-warmup-fraction %g",
                                 static_cast<long long>(c.lr_warmup_iters), part),
                .want = "one of them", .fix = "leave one of them out");
  if (part < 0 && c.lr_warmup_iters < 0) c.lr_warmup_iters = c.train_iters / 10;
  const LrSchedule schedule = schedule_in_steps(c);
  if (schedule.decay_steps > 0) schedule.validate();  // a run of no steps has no schedule
}

}  // namespace ranklab
