#include "core/optim/loss_scaler.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The scale of each step of a script: '.' a step without overflow, 'X' one with.
std::vector<double> scales(LossScaler& scaler, const std::string& script) {
  std::vector<double> out;
  for (const char step : script) {
    out.push_back(scaler.scale());
    scaler.update(step == 'X');
  }
  return out;
}

TEST(LossScaler, FollowsAScriptOfOverflows) {
  LossScaler scaler({.initial = 1024, .window = 3});
  EXPECT_THAT(scales(scaler, "..X....X.X...."),
              ElementsAre(1024, 1024, 1024, 512, 512, 512, 1024, 1024, 512, 512, 256, 256, 256, 512));
  EXPECT_EQ(scaler.skipped_steps(), 3);
  EXPECT_EQ(scaler.state(), (LossScaleState{.scale = 512, .clean_steps = 1, .skipped_steps = 3}));
  EXPECT_FALSE(scaler.overflowed());
  scaler.update(true);
  EXPECT_TRUE(scaler.overflowed());
}

TEST(LossScaler, StaysBetweenItsBounds) {
  LossScaler scaler({.initial = 2, .min = 1, .max = 4, .window = 1});
  EXPECT_THAT(scales(scaler, "XXX....."), ElementsAre(2, 1, 1, 1, 2, 4, 4, 4));
  LossScaler usual(LossScaleRule{});
  for (int i = 0; i < 40; ++i) usual.update(true);
  EXPECT_EQ(usual.scale(), 1);
  for (int i = 0; i < 30 * 2000; ++i) usual.update(false);
  EXPECT_EQ(usual.scale(), 16777216);
}

TEST(LossScaler, AConstantOneStaysAndCounts) {
  LossScaler scaler({.dynamic = false, .initial = 128, .window = 1});
  EXPECT_THAT(scales(scaler, ".X.X"), ElementsAre(128, 128, 128, 128));
  EXPECT_EQ(scaler.skipped_steps(), 2);
  scaler.restore({.scale = 7, .clean_steps = 1, .skipped_steps = 5});
  EXPECT_EQ(scaler.scale(), 128);
  EXPECT_EQ(scaler.skipped_steps(), 5);
}

TEST(LossScaler, GoesOnFromWhatWasKept) {
  const LossScaleRule rule{.initial = 4096, .window = 2};
  LossScaler whole(rule), first(rule), second(rule);
  const std::string script = "..X.X...XX....";
  std::vector<double> want = scales(whole, script), got = scales(first, script.substr(0, 7));
  second.restore(first.state());
  for (const double scale : scales(second, script.substr(7))) got.push_back(scale);
  EXPECT_EQ(got, want);
  EXPECT_EQ(second.state(), whole.state());
}

std::string refusal(const LossScaleRule& rule) {
  try {
    const LossScaler scaler(rule);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(LossScaler, RefusesWhatMakesNoScale) {
  EXPECT_THAT(refusal({.initial = 0.5}), HasSubstr("--min-loss-scale 1 to --max-loss-scale 16777216"));
  EXPECT_THAT(refusal({.initial = 33554432}), HasSubstr("33554432"));
  EXPECT_THAT(refusal({.dynamic = false, .initial = -2}), HasSubstr("--loss-scale"));
  EXPECT_THAT(refusal({.initial = std::numeric_limits<double>::quiet_NaN()}), HasSubstr("nan"));
  EXPECT_THAT(refusal({.min = 0}), HasSubstr("--min-loss-scale"));
  EXPECT_THAT(refusal({.window = 0}), HasSubstr("--loss-scale-window"));
  EXPECT_EQ(refusal({.dynamic = false, .initial = 0.25}), "");
}

}  // namespace
}  // namespace ranklab
