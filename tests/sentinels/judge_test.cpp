// When sentinels fire, begin to fire and end a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/runtime/sentinels/judge.h"

namespace ranklab {
namespace {

SentinelReport judged(SentinelJudge& judge, const char* name, double value) {
  SentinelReport report;
  report.add(name, value);
  judge.judge(report);
  return report;
}

TEST(SentinelJudge, WarnsOnceAndStopsBeyondTheStopBound) {
  SentinelJudge judge(SentinelRules(SentinelMode::kMinimal, ""));
  EXPECT_TRUE(judged(judge, "loss_spike", 2.9).alarms.empty());
  const SentinelReport first = judged(judge, "loss_spike", 3.5);
  ASSERT_EQ(first.alarms.size(), 1u);
  EXPECT_EQ(first.alarms[0].level, SentinelLevel::kWarn);
  EXPECT_TRUE(first.alarms[0].begins);
  EXPECT_EQ(first.stopping(), nullptr);
  EXPECT_EQ(first.alarms[0].text(), "loss_spike: Health/loss_spike_ratio is 3.5, above 3");
  EXPECT_FALSE(judged(judge, "loss_spike", 4).alarms[0].begins);
  const SentinelReport last = judged(judge, "loss_spike", 11);
  EXPECT_TRUE(last.alarms[0].begins);  // at a level above
  ASSERT_NE(last.stopping(), nullptr);
  EXPECT_EQ(last.stopping()->bounds.high, 10);
  EXPECT_TRUE(judged(judge, "loss_spike", 1).alarms.empty());
  EXPECT_TRUE(judged(judge, "loss_spike", 4).alarms[0].begins);  // again
}

TEST(SentinelJudge, CountsMeasurementsInARow) {
  SentinelJudge judge(SentinelRules(SentinelMode::kMinimal, "clip_coef in-a-row=3"));
  for (const double value : {0.05, 0.05, 0.7, 0.05, 0.05})
    EXPECT_EQ(judged(judge, "clip_coef", value).stopping(), nullptr);
  EXPECT_NE(judged(judge, "clip_coef", 0.05).stopping(), nullptr);
}

TEST(SentinelJudge, AnActionOfStopEndsTheRunAtTheWarning) {
  SentinelJudge judge(SentinelRules(SentinelMode::kMinimal, "grad_norm warn=0.1..2 action=stop"));
  EXPECT_EQ(judged(judge, "grad_norm", 1).stopping(), nullptr);
  EXPECT_NE(judged(judge, "grad_norm", 3).stopping(), nullptr);
  EXPECT_NE(judged(judge, "grad_norm", 0.01).stopping(), nullptr);
}

TEST(SentinelJudge, PlacesAreJudgedApartAndWhatIsNotMeasuredIsDropped) {
  SentinelJudge judge(SentinelRules(SentinelMode::kStandard, "activation_max off"));
  SentinelReport report;
  report.add("norm_rms", 3, "layers.0.mlp_norm");
  report.add("norm_rms", 1, "layers.1.mlp_norm");
  report.add("activation_max", 1e9, "layers.1.mlp_norm");
  report.add("parameter_update_norm", 1, "w");  // of mode debug
  report.add("residual_rms", std::numeric_limits<double>::quiet_NaN(), "block_1");
  judge.judge(report);
  EXPECT_EQ(report.values.size(), 2u);
  ASSERT_EQ(report.alarms.size(), 1u);
  EXPECT_EQ(report.alarms[0].tag, "Activations/layers.0.mlp_norm/rms");
  EXPECT_NE(report.find("Activations/layers.1.mlp_norm/rms"), nullptr);
  EXPECT_EQ(report.find("Activations/layers.1.mlp_norm/max_abs"), nullptr);
}

}  // namespace
}  // namespace ranklab
