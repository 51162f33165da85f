#include "core/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/optim/weight_decay_schedule.h"

namespace ranklab {
namespace {

// 10 steps of warm-up to 4e-3, then 100 steps down to 4e-4.
LrSchedule schedule_of(LrDecay kind) {
  return {.kind = kind, .max_lr = 4e-3, .min_lr = 4e-4, .warmup_steps = 10, .decay_steps = 110, .wsd_decay_steps = 20};
}

using Values = std::vector<std::pair<int64_t, double>>;

void expect_values(const LrSchedule& schedule, const Values& values) {
  schedule.validate();
  for (const auto& [step, lr] : values) EXPECT_NEAR(schedule.at(step), lr, 1e-15) << "step " << step;
}

TEST(LrSchedule, CosineHasMegatronsCorners) {
  const LrSchedule s{.kind = LrDecay::kCosine, .max_lr = 4e-3, .min_lr = 3e-5, .warmup_steps = 10, .decay_steps = 110};
  EXPECT_DOUBLE_EQ(s.at(0), 0.0);
  EXPECT_DOUBLE_EQ(s.at(5), 2e-3);
  EXPECT_DOUBLE_EQ(s.at(10), 4e-3);
  EXPECT_DOUBLE_EQ(s.at(60), (4e-3 + 3e-5) / 2);
  EXPECT_DOUBLE_EQ(s.at(110), 3e-5);
  EXPECT_DOUBLE_EQ(s.at(100000), 3e-5);
  for (int step = 10; step < 110; ++step) EXPECT_GT(s.at(step), s.at(step + 1));
}

TEST(LrSchedule, ConstantStaysAfterTheWarmup) {
  const LrSchedule s{.max_lr = 1.0, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(s.at(1), 0.25);
  EXPECT_DOUBLE_EQ(s.at(4), 1.0);
  EXPECT_DOUBLE_EQ(s.at(1000), 1.0);
  EXPECT_DOUBLE_EQ((LrSchedule{.max_lr = 1.0}.at(0)), 1.0);
}

TEST(LrSchedule, TheWarmupBeginsWhereItIsTold) {
  LrSchedule s = schedule_of(LrDecay::kLinear);
  s.warmup_init = 1e-3;
  expect_values(s, {{0, 1e-3}, {5, 2.5e-3}, {9, 3.7e-3}, {10, 4e-3}});
  s.warmup_steps = 2.5;  // a fraction of the decay's steps
  expect_values(s, {{0, 1e-3}, {2, 1e-3 + 3e-3 * 0.8}, {3, 4e-4 + 3.6e-3 * (1 - 0.5 / 107.5)}});
  s.warmup_steps = 0;
  expect_values(s, {{0, 4e-3}});
}

// Megatron-LM compares with <=: where the decay of WSD would begin within the warm-up, its last step is still whole.
TEST(LrSchedule, TheWarmupEndsAtTheWholeRate) {
  LrSchedule s = schedule_of(LrDecay::kWsd);
  s.wsd_decay = WsdDecay::kLinear;
  s.wsd_decay_steps = 110;
  expect_values(s, {{9, 3.6e-3}, {10, 4e-3}, {11, 4e-4 + 3.6e-3 * 0.9}});
}

TEST(LrSchedule, LinearFallsByTheSameAmount) {
  expect_values(schedule_of(LrDecay::kLinear),
                {{5, 2e-3}, {10, 4e-3}, {35, 3.1e-3}, {60, 2.2e-3}, {109, 4.36e-4}, {110, 4e-4}, {5000, 4e-4}});
}

TEST(LrSchedule, ExponentialFallsByTheSameFactor) {
  // From max to a tenth of it in 100 steps: by 10^-0.01 in each.
  const LrSchedule s = schedule_of(LrDecay::kExponential);
  expect_values(s, {{5, 2e-3}, {10, 4e-3}, {60, 4e-3 / std::sqrt(10.0)}, {110, 4e-4}, {5000, 4e-4}});
  for (int step = 10; step < 110; ++step) EXPECT_NEAR(s.at(step + 1) / s.at(step), 0.97723722095581067, 1e-14);
}

TEST(LrSchedule, InverseSquareRootOfTheStepDownToTheFloor) {
  const LrSchedule s = schedule_of(LrDecay::kInverseSquareRoot);
  expect_values(s, {{5, 2e-3}, {10, 4e-3}, {40, 2e-3}, {90, 4e-3 / 3}, {110, 4e-3 * std::sqrt(1 / 11.0)}, {111, 4e-4}});
  LrSchedule floored = s;
  floored.min_lr = 3e-3;
  expect_values(floored, {{11, 4e-3 * std::sqrt(10 / 11.0)}, {40, 3e-3}, {111, 3e-3}});
  LrSchedule cold = s;
  cold.warmup_steps = 0;
  expect_values(cold, {{0, 4e-3}, {1, 4e-3}, {4, 2e-3}, {100, 4e-4}});
}

// Stable to step 90; the middle of the decay is step 100, a quarter of it step 95.
TEST(LrSchedule, WsdIsStableAndThenComesDownInEachOfFourShapes) {
  const double delta = 3.6e-3, low = 4e-4;
  const std::vector<std::pair<WsdDecay, std::pair<double, double>>> shapes = {
      {WsdDecay::kExponential, {2 / std::pow(2.0, 0.25) - 1, std::sqrt(2.0) - 1}},
      {WsdDecay::kLinear, {0.75, 0.5}},
      {WsdDecay::kCosine, {0.5 + std::sqrt(2.0) / 4, 0.5}},
      {WsdDecay::kMinusSqrt, {0.5, 1 - std::sqrt(0.5)}}};
  for (const auto& [shape, left] : shapes) {
    SCOPED_TRACE(static_cast<int>(shape));
    LrSchedule s = schedule_of(LrDecay::kWsd);
    s.wsd_decay = shape;
    expect_values(s, {{5, 2e-3},
                      {10, 4e-3},
                      {50, 4e-3},
                      {90, 4e-3},
                      {95, low + delta * left.first},
                      {100, low + delta * left.second},
                      {110, low},
                      {5000, low}});
    for (int step = 90; step < 110; ++step) EXPECT_GT(s.at(step), s.at(step + 1));
  }
}

std::string refusal(const LrSchedule& s) {
  try {
    s.validate();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

void expect_refused(const LrSchedule& s, const std::string& part) {
  EXPECT_NE(refusal(s).find(part), std::string::npos) << refusal(s);
}

TEST(LrSchedule, RefusesNonsenseNamingBothNumbers) {
  expect_refused({.kind = LrDecay::kCosine, .warmup_steps = 50, .decay_steps = 50},
                 "--lr-warmup-iters 50, decay over 50");
  expect_refused({.max_lr = 1e-3, .min_lr = 1e-2}, "--min-lr 0.01, --lr 0.001");
  expect_refused({.max_lr = 1e-3, .warmup_init = 1e-2}, "--lr-warmup-init 0.01, --lr 0.001");
  expect_refused({.kind = LrDecay::kExponential, .decay_steps = 50}, "--min-lr 0;");
  LrSchedule wsd = schedule_of(LrDecay::kWsd);
  wsd.wsd_decay_steps = 111;
  expect_refused(wsd, "--lr-wsd-decay-iters 111, a schedule of 110 steps");
  wsd.wsd_decay_steps = 0;
  expect_refused(wsd, "--lr-wsd-decay-iters 0");
  wsd.wsd_decay_steps = 110;
  EXPECT_EQ(refusal(wsd), "accepted");
  EXPECT_EQ(refusal({.kind = LrDecay::kCosine, .warmup_steps = 49, .decay_steps = 50}), "accepted");
}

// Megatron-LM's get_wd(): its increment is that of a line or of half a cosine's period, over all sequences of the run.
TEST(WeightDecay, GoesFromItsStartToItsEndAsMegatrons) {
  const BatchRamp batches{.whole = 8};
  WeightDecaySchedule s{.style = WeightDecayStyle::kLinear, .start = 0.02, .end = 0.1, .samples = 80, .ramp = batches};
  for (const auto& [step, want] : Values{{0, 0.02}, {1, 0.028}, {5, 0.06}, {10, 0.1}, {11, 0.1}, {1000, 0.1}})
    EXPECT_NEAR(s.at(step), want, 1e-15) << step;
  s.style = WeightDecayStyle::kCosine;
  for (int64_t step = 0; step <= 10; ++step) {
    const double coefficient = 0.5 * (std::cos(M_PI * (1 - static_cast<double>(step) / 10)) + 1);
    EXPECT_NEAR(s.at(step), 0.02 + coefficient * 0.08, 1e-15) << step;
  }
  std::swap(s.start, s.end);
  EXPECT_NEAR(s.at(10), 0.02, 1e-15) << "it may fall";
  EXPECT_DOUBLE_EQ(WeightDecaySchedule{.end = 0.3}.at(7), 0.3);
}

// A skipped step, and its sequences, do not count; small batches move it by less.
TEST(WeightDecay, CountsSequencesThatWereLearnedFrom) {
  WeightDecaySchedule s{.style = WeightDecayStyle::kLinear, .start = 0, .end = 1, .samples = 80, .ramp = {.whole = 8}};
  EXPECT_DOUBLE_EQ(s.at(6, {.steps = 2, .samples = 16}), 0.4);
  s.ramp = BatchRamp::parse("4 4 16", 8);
  s.samples = 64;
  EXPECT_DOUBLE_EQ(s.at(4), 0.25);
  EXPECT_DOUBLE_EQ(s.at(5), 0.375);
}

}  // namespace
}  // namespace ranklab
