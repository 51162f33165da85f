// Growing batches against Megatron-LM's rule, applied step by step.
#include "core/base/batch_ramp.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// RampupBatchsizeNumMicroBatchesCalculator.update() of megatron/core/num_microbatches_calculator.py.
int64_t megatron_size(const BatchRamp& r, int64_t consumed) {
  if (consumed > r.samples) return r.whole;
  const double per_increment = static_cast<double>(r.samples) / static_cast<double>((r.whole - r.start) / r.increment);
  return r.start + static_cast<int64_t>(static_cast<double>(consumed) / per_increment) * r.increment;
}

TEST(BatchRamp, GrowsAsMegatronsDoes) {
  for (const char* text : {"8 8 128", "2 2 100", "8 24 64", "4 4 1000", "16 16 1", "30 1 17"}) {
    const BatchRamp ramp = BatchRamp::parse(text, 32);
    SCOPED_TRACE(text);
    int64_t consumed = 0;
    for (int64_t step = 0; step < 300; ++step) {
      EXPECT_EQ(ramp.samples_before(step), consumed);
      const int64_t size = megatron_size(ramp, consumed);
      EXPECT_EQ(ramp.size_of(step), size) << step;
      consumed += size;
      EXPECT_EQ(ramp.steps_in(consumed), step + 1);
      EXPECT_EQ(ramp.steps_in(consumed - 1), step);
    }
    EXPECT_EQ(ramp.size_of(299), 32);
  }
}

// StepBatchsizeNumMicroBatchesCalculator.
TEST(BatchRamp, SizesMayBeGivenEach) {
  const BatchRamp ramp = BatchRamp::parse("0:8 20:4,50:32", 32);
  EXPECT_TRUE(ramp.grows());
  EXPECT_EQ(ramp.least(), 4);
  EXPECT_EQ(ramp.divisor(), 4);
  EXPECT_THAT(ramp.sizes(), ElementsAre(8, 4, 32));
  int64_t consumed = 0;
  for (int64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(ramp.samples_before(step), consumed);
    EXPECT_EQ(ramp.size_of(step), consumed >= 50 ? 32 : consumed >= 20 ? 4 : 8) << step;
    consumed += ramp.size_of(step);
    EXPECT_EQ(ramp.steps_in(consumed), step + 1);
    EXPECT_EQ(ramp.steps_in(consumed - 1), step);
  }
  EXPECT_FALSE(BatchRamp::parse("0:32", 32).grows());
  for (const char* text : {"0:8 20:4", "5:8 20:32", "0:8 20:16 20:32", "0:0 20:32", "0:8 x:32", "0:8 20:32 7", "0:"})
    EXPECT_THROW(BatchRamp::parse(text, 32), Error) << text;
}

TEST(BatchRamp, SizesAreThoseThatStepsHave) {
  EXPECT_THAT(BatchRamp::parse("8 8 128", 32).sizes(), ElementsAre(8, 16, 24, 32));
  EXPECT_THAT(BatchRamp::parse("8,24,64", 32).sizes(), ElementsAre(8, 32));
  EXPECT_THAT(BatchRamp::parse("8 8 10", 32).sizes(), ElementsAre(8, 24, 32)) << "a size that no step has";
  EXPECT_THAT(BatchRamp::parse("", 32).sizes(), ElementsAre(32));
}

TEST(BatchRamp, GoesOnFromTheSamplesThatARunConsumed) {
  BatchRamp ramp = BatchRamp::parse("8 8 128", 32);
  ramp.first_step = 10;
  ramp.first_sample = 50;
  int64_t consumed = 50;
  for (int64_t step = 10; step < 30; ++step) {
    EXPECT_EQ(ramp.samples_before(step), consumed);
    EXPECT_EQ(ramp.size_of(step), megatron_size(ramp, consumed)) << step;
    consumed += ramp.size_of(step);
    EXPECT_EQ(ramp.steps_in(consumed), step + 1);
  }
  EXPECT_THAT(ramp.sizes(), ElementsAre(16, 24, 32));
  EXPECT_EQ(ramp.steps_in(25), 5);
  EXPECT_EQ(ramp.samples_before(5), 25) << "of the steps before, only how many samples they had is known";
}

TEST(BatchRamp, WithoutOneEachStepHasTheWholeBatch) {
  const BatchRamp none = BatchRamp::parse("", 32);
  EXPECT_FALSE(none.grows());
  EXPECT_EQ(none.samples_before(1'000'000'000), 32'000'000'000);
  EXPECT_EQ(none.steps_in(100), 3);
}

TEST(BatchRamp, ProductsOfLargeNumbersDoNotOverflow) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  const BatchRamp ramp = BatchRamp::parse("16777216 16777216 1099511627776", kLarge);
  EXPECT_EQ(ramp.size_after(0), 1 << 24);
  EXPECT_EQ(ramp.size_after(kLarge / 2), int64_t{1} << 39);
  EXPECT_EQ(ramp.size_after(kLarge), kLarge);
  EXPECT_EQ(ramp.sizes().back(), kLarge);
  EXPECT_TRUE(std::ranges::is_sorted(ramp.sizes()));
}

std::string refusal(const std::string& text) {
  try {
    BatchRamp::parse(text, 32);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(BatchRamp, RefusesWhatMegatronRefuses) {
  for (const char* text : {"8 8", "8 8 8 8", "eight 8 8", "0 8 8", "8 0 8", "8 8 -1", "8 8 1e3", "8;8;8", "-8 8 8"})
    EXPECT_THAT(refusal(text), HasSubstr("START INCREMENT SAMPLES")) << text;
  EXPECT_THAT(refusal("32 8 100"), HasSubstr("START is not below the global batch size"));
  EXPECT_THAT(refusal("8 7 100"), HasSubstr("does not divide"));
  EXPECT_EQ(refusal("8 8 0"), "");
}

}  // namespace
}  // namespace ranklab
