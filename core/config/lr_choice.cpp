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

bool samples_given(const TrainConfig& c) {
  return c.lr_warmup_samples >= 0 || c.lr_decay_samples > 0 || c.lr_wsd_decay_samples > 0;
}

// Whether the learning rate must be computed from the number of sequences: batches grow, a length of the schedule is
// given in sequences, or the decay lasts as long as a run that is: its sequences need not be a whole number of batches,
// and their size may change when it resumes.
bool counts_samples(const TrainConfig& c, const BatchRamp& ramp) {
  const bool by_run = c.lr_decay_iters == 0 && c.train_samples > 0;
  return ramp.grows() || samples_given(c) || by_run;
}

int64_t decay_samples_of(const TrainConfig& c, const BatchRamp& ramp, int64_t decay_steps) {
  if (c.lr_decay_samples > 0) return c.lr_decay_samples;
  return c.lr_decay_iters == 0 && c.train_samples > 0 ? c.train_samples : ramp.samples_before(decay_steps);
}

// Converts lengths that are given in steps to the number of sequences of these steps.
void count_sequences(LrSchedule& schedule, const BatchRamp& ramp, const TrainConfig& c) {
  const int64_t decay = decay_samples_of(c, ramp, schedule.decay_steps);
  const double part = c.lr_warmup_fraction;
  if (part >= 0) {
    schedule.warmup_steps = part * static_cast<double>(decay);
  } else {
    schedule.warmup_steps = static_cast<double>(
        c.lr_warmup_samples >= 0 ? c.lr_warmup_samples : ramp.samples_before(std::max<int64_t>(c.lr_warmup_iters, 0)));
  }
  schedule.wsd_decay_steps = std::max<int64_t>(decay / 10, 1);
  if (c.lr_wsd_decay_samples > 0) {
    schedule.wsd_decay_steps = c.lr_wsd_decay_samples;
  } else if (c.lr_wsd_decay_iters > 0) {
    const int64_t steps = c.lr_decay_samples > 0 ? ramp.steps_in(decay) : schedule.decay_steps;
    schedule.wsd_decay_steps = decay - ramp.samples_before(std::max<int64_t>(steps - c.lr_wsd_decay_iters, 0));
  }
  schedule.decay_steps = decay;
  schedule.in_samples = true;
  schedule.ramp = ramp;
}

struct Pair {
  const char* name;  // "--lr-" name "-iters"
  int64_t iters, samples;
  bool both;
};

void refuse_two_units(const TrainConfig& c) {
  const Pair pairs[] = {
      {"warmup", c.lr_warmup_iters, c.lr_warmup_samples, c.lr_warmup_iters >= 0 && c.lr_warmup_samples >= 0},
      {"decay", c.lr_decay_iters, c.lr_decay_samples, c.lr_decay_iters > 0 && c.lr_decay_samples > 0},
      {"wsd-decay", c.lr_wsd_decay_iters, c.lr_wsd_decay_samples,
       c.lr_wsd_decay_iters > 0 && c.lr_wsd_decay_samples > 0},
  };
  for (const Pair& pair : pairs) {
    RANKLAB_CHECK(!pair.both, ErrorKind::kInvalidArgument, .where = "config",
                  .what = strprintf("--lr-%s-iters and --lr-%s-samples contradict each other", pair.name, pair.name),
                  .got = strprintf("--lr-%s-iters %lld, --lr-%s-samples %lld", pair.name,
                                   static_cast<long long>(pair.iters), pair.name, static_cast<long long>(pair.samples)),
                  .want = "one of them", .fix = "leave one of them out");
  }
}

}  // namespace

LrSchedule lr_schedule_of(const TrainConfig& c) {
  return lr_schedule_of(c, BatchRamp::parse(c.rampup_batch_size, c.global_batch_size));
}

LrSchedule lr_schedule_of(const TrainConfig& c, const BatchRamp& ramp) {
  LrSchedule schedule = schedule_in_steps(c);
  if (counts_samples(c, ramp)) count_sequences(schedule, ramp, c);
  return schedule;
}

void settle_learning_rate(TrainConfig& c) {
  const double part = c.lr_warmup_fraction;
  RANKLAB_CHECK(part == -1 || (part >= 0 && part < 1), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--lr-warmup-fraction is out of range", .got = strprintf("--lr-warmup-fraction %g", part),
                .want = "0 or more and below 1, or -1 (by --lr-warmup-iters)",
                .fix = "pass the part of the decay's steps that warms up, as 0.01");
  const bool in_samples = c.lr_warmup_samples >= 0;
  const int64_t warmup = in_samples ? c.lr_warmup_samples : c.lr_warmup_iters;
  const char* flag = in_samples ? "--lr-warmup-samples" : "--lr-warmup-iters";
  RANKLAB_CHECK(part < 0 || warmup < 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = strprintf("%s and --lr-warmup-fraction contradict each other", flag),
                .got = strprintf("%s %lld, --lr-warmup-fraction %g", flag, static_cast<long long>(warmup), part),
                .want = "one of them", .fix = "leave one of them out");
  refuse_two_units(c);
  if (part < 0 && warmup < 0) {
    // In the unit of the run's length, so that the warm-up stays what it was if the run resumes with other batches.
    if (c.train_samples > 0)
      c.lr_warmup_samples = c.train_samples / 10;
    else
      c.lr_warmup_iters = c.train_iters / 10;
  }
  const LrSchedule schedule = samples_given(c) ? lr_schedule_of(c) : schedule_in_steps(c);
  if (schedule.decay_steps > 0) schedule.validate();  // a run of no steps has no schedule
}

WeightDecaySchedule weight_decay_schedule_of(const TrainConfig& c, const BatchRamp& ramp) {
  if (c.weight_decay_style == WeightDecayStyle::kConstant) return {.start = c.weight_decay, .end = c.weight_decay};
  return {.style = c.weight_decay_style,
          .start = c.start_weight_decay,
          .end = c.end_weight_decay,
          .samples = c.train_samples > 0 ? c.train_samples : ramp.samples_before(c.train_iters),
          .ramp = ramp};
}

void check_weight_decay(const TrainConfig& c) {
  if (c.weight_decay_style == WeightDecayStyle::kConstant) return;
  const auto shown = [](const char* flag, double value) {
    return value == -1 ? "no " + std::string(flag) : strprintf("%s %g", flag, value);
  };
  RANKLAB_CHECK(c.start_weight_decay >= 0 && c.end_weight_decay >= 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--weight-decay-incr-style needs the first and the last weight decay",
                .got = shown("--start-weight-decay", c.start_weight_decay) + ", " +
                       shown("--end-weight-decay", c.end_weight_decay),
                .want = "both, 0 or more", .fix = "pass both, or --weight-decay-incr-style constant");
}

}  // namespace ranklab
