#include "core/config/traced_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab {
namespace {

using testing::HasSubstr;

TrainConfig traced(int64_t start, int64_t end) {
  TrainConfig config;
  config.trace_step_start = start;
  config.trace_step_end = end;
  return config;
}

TEST(TracedSteps, AreARunsFirstWhereverItBegins) {
  const TrainConfig config;
  EXPECT_TRUE(traced_steps(config, 0).has(0));
  EXPECT_TRUE(traced_steps(config, 0).has(19));
  EXPECT_FALSE(traced_steps(config, 0).has(20));
  EXPECT_FALSE(traced_steps(config, 1000).has(999));
  EXPECT_TRUE(traced_steps(config, 1000).has(1000));
  EXPECT_EQ(traced_steps(config, 1000).end, 1020);
  EXPECT_EQ(no_step_text(config, 1000, 1001), "");
}

TEST(TracedSteps, ThatAreAskedForStay) {
  EXPECT_EQ(traced_steps(traced(5, -1), 3).first, 5);
  EXPECT_EQ(traced_steps(traced(5, -1), 3).end, 25);
  EXPECT_EQ(traced_steps(traced(-1, 30), 3).first, 3);
  EXPECT_EQ(traced_steps(traced(-1, 30), 3).end, 30);
  EXPECT_FALSE(traces_a_step(traced(0, 30), 30, 40));
  EXPECT_TRUE(traces_a_step(traced(0, 30), 29, 40));
  EXPECT_THAT(no_step_text(traced(-1, 30), 40, 50),
              HasSubstr("this run's are 40 to 49, and none from 30 on is traced"));
}

}  // namespace
}  // namespace ranklab
