#include "core/optim/lr_schedule.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

// The unit as it ends the names of the flags (--lr-warmup-iters, --lr-warmup-samples).
const char* LrSchedule::unit() const { return in_samples ? "samples" : "iters"; }

void LrSchedule::validate() const {
  RANKLAB_CHECK(max_lr >= 0 && min_lr >= 0 && min_lr <= max_lr, ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "--min-lr is above --lr", .got = strprintf("--min-lr %g, --lr %g", min_lr, max_lr),
                .want = strprintf("at most %g", max_lr), .fix = "lower --min-lr, or raise --lr");
  RANKLAB_CHECK(warmup_init >= 0 && warmup_init <= max_lr, ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "the warm-up would begin above --lr",
                .got = strprintf("--lr-warmup-init %g, --lr %g", warmup_init, max_lr),
                .want = strprintf("at most %g", max_lr), .fix = "lower --lr-warmup-init, or raise --lr");
  RANKLAB_CHECK(warmup_steps >= 0, ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "a negative number of warm-up steps", .got = strprintf("--lr-warmup-iters %g", warmup_steps),
                .want = "0 or more");
  if (kind != LrDecay::kConstant) validate_decay();
}

void LrSchedule::validate_decay() const {
  const auto decay = static_cast<long long>(decay_steps);
  RANKLAB_CHECK(warmup_steps < static_cast<double>(decay_steps), ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "the warm-up is not shorter than the decay",
                .got = in_samples ? strprintf("a warm-up of %g sequences, decay over %lld", warmup_steps, decay)
                                  : strprintf("--lr-warmup-iters %g, decay over %lld steps", warmup_steps, decay),
                .want = strprintf("warm-up below %lld", decay),
                .fix = strprintf("lower --lr-warmup-%s, or raise --train-%s or --lr-decay-%s", unit(), unit(), unit()));
  RANKLAB_CHECK(kind != LrDecay::kExponential || min_lr > 0, ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "an exponential decay never reaches 0", .got = strprintf("--min-lr %g", min_lr),
                .want = "--min-lr above 0", .fix = "pass --min-lr, or use --lr-decay-style linear or cosine");
  RANKLAB_CHECK(
      kind != LrDecay::kWsd || (wsd_decay_steps > 0 && wsd_decay_steps <= decay_steps), ErrorKind::kInvalidArgument,
      .where = "lr schedule", .what = "the decay of WSD does not lie within the schedule",
      .got = strprintf("--lr-wsd-decay-%s %lld, a schedule of %lld %s", unit(), static_cast<long long>(wsd_decay_steps),
                       decay, in_samples ? "sequences" : "steps"),
      .want = strprintf("1 to %lld", decay),
      .fix = strprintf("lower --lr-wsd-decay-%s, or raise --train-%s or --lr-decay-%s", unit(), unit(), unit()));
}

double LrSchedule::at(int64_t completed_steps, const SkippedSteps& skipped) const {
  const auto step = static_cast<double>(in_samples ? ramp.samples_before(completed_steps) - skipped.samples
                                                   : completed_steps - skipped.steps);
  if (warmup_steps > 0 && step <= warmup_steps) return warmup_init + (max_lr - warmup_init) * step / warmup_steps;
  if (kind == LrDecay::kConstant) return max_lr;
  const auto end = static_cast<double>(decay_steps);
  if (step > end) return min_lr;
  const double ratio = (step - warmup_steps) / (end - warmup_steps);
  const auto above_min = [&](double left) { return min_lr + (max_lr - min_lr) * left; };
  switch (kind) {
    case LrDecay::kConstant:
      return max_lr;
    case LrDecay::kCosine:
      return above_min(cosine_left(ratio));
    case LrDecay::kLinear:
      return above_min(linear_left(ratio));
    case LrDecay::kInverseSquareRoot:
      return inverse_sqrt_lr(max_lr, min_lr, step, warmup_steps);
    case LrDecay::kWsd:
      return above_min(wsd_left(wsd_decay, step, end, static_cast<double>(wsd_decay_steps)));
    case LrDecay::kExponential:
      return exponential_lr(max_lr, min_lr, ratio);
  }
  throw Error(ErrorKind::kInternal, {.where = "lr schedule", .what = "no such decay"});
}

}  // namespace ranklab
