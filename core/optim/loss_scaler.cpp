#include "core/optim/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

void check_positive(const char* flag, double value) {
  RANKLAB_CHECK(value > 0 && std::isfinite(value), ErrorKind::kInvalidArgument, .where = "config",
                .what = std::string(flag) + " is not a valid scale", .got = strprintf("%g", value), .want = "above 0",
                .fix = "leave it out for the default");
}

void check(const LossScaleRule& rule) {
  check_positive(rule.dynamic ? "--initial-loss-scale" : "--loss-scale", rule.initial);
  if (!rule.dynamic) return;
  check_positive("--min-loss-scale", rule.min);
  check_positive("--max-loss-scale", rule.max);
  RANKLAB_CHECK(rule.min <= rule.max, ErrorKind::kInvalidArgument, .where = "config",
                .what = "the smallest loss scale is above the largest",
                .got = strprintf("--min-loss-scale %.10g, --max-loss-scale %.10g", rule.min, rule.max),
                .want = "no more than the largest", .fix = "leave out the one that does not fit");
  RANKLAB_CHECK(rule.min <= rule.initial && rule.initial <= rule.max, ErrorKind::kInvalidArgument, .where = "config",
                .what = "the first loss scale is not between the smallest and the largest",
                .got = strprintf("--initial-loss-scale %.10g", rule.initial),
                .want = strprintf("--min-loss-scale %.10g to --max-loss-scale %.10g", rule.min, rule.max),
                .fix = "leave out the one that does not fit");
  RANKLAB_CHECK(rule.window > 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--loss-scale-window is out of range", .got = std::to_string(rule.window), .want = "1 or more",
                .fix = "leave it out for the default");
}

}  // namespace

LossScaler::LossScaler(const LossScaleRule& rule) : rule_(rule), state_{.scale = rule.initial} { check(rule); }

void LossScaler::update(bool overflow) {
  constexpr double kFactor = 2;
  overflowed_ = overflow;
  state_.clean_steps = overflow ? 0 : state_.clean_steps + 1;
  state_.skipped_steps += overflow ? 1 : 0;
  if (!rule_.dynamic) return;
  if (overflow) state_.scale = std::max(state_.scale / kFactor, rule_.min);
  if (state_.clean_steps < rule_.window) return;
  state_.scale = std::min(state_.scale * kFactor, rule_.max);
  state_.clean_steps = 0;
}

void LossScaler::restore(const LossScaleState& state) {
  state_ = state;
  if (!rule_.dynamic) state_.scale = rule_.initial;
}

}  // namespace ranklab
