#include "core/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace ranklab {
namespace {

TEST(LrSchedule, CosineHasMegatronsCorners) {
  const LrSchedule s{.kind = LrKind::kCosine, .max_lr = 4e-3, .min_lr = 3e-5, .warmup_steps = 10, .decay_steps = 110};
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

TEST(LrSchedule, RefusesNonsenseNamingBothNumbers) {
  const auto refusal = [](const LrSchedule& s) -> std::string {
    try {
      s.validate();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(
      refusal({.kind = LrKind::kCosine, .warmup_steps = 50, .decay_steps = 50}).find("warm-up 50 steps, decay 50"),
      std::string::npos);
  EXPECT_NE(refusal({.max_lr = 1e-3, .min_lr = 1e-2}).find("min-lr 0.01, lr 0.001"), std::string::npos);
  EXPECT_EQ(refusal({.kind = LrKind::kCosine, .warmup_steps = 49, .decay_steps = 50}), "accepted");
}

}  // namespace
}  // namespace ranklab
