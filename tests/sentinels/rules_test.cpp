// The table of sentinels, and how --sentinel changes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/config/train_config.h"

namespace ranklab {
namespace {

std::string refusal_of(SentinelMode mode, const std::string& rules) {
  try {
    SentinelRules{mode, rules};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(SentinelTable, EveryRowHasANameATagAndAFormulaOfItsOwn) {
  std::set<std::string> names, tags;
  for (const SentinelRow& row : sentinel_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(tags.insert(row.tag).second) << row.tag;
    EXPECT_GT(std::string(row.formula).size(), 5u) << row.name;
    EXPECT_EQ(row.mode == SentinelMode::kOff, std::string(row.name).starts_with("parity_")) << row.name;
    // Where both are given, the bound that stops the run is beyond the one that warns.
    if (!row.warn.open() && !row.stop.open()) {
      EXPECT_LE(row.stop.low, row.warn.low) << row.name;
      EXPECT_GE(row.stop.high, row.warn.high) << row.name;
    }
  }
  EXPECT_GE(names.size(), 60u);
}

TEST(SentinelTable, AModeHasTheRowsOfThoseBeforeIt) {
  EXPECT_FALSE(SentinelRules(SentinelMode::kOff, "").measures("loss_spike"));
  EXPECT_TRUE(SentinelRules(SentinelMode::kMinimal, "").measures("loss_spike"));
  EXPECT_FALSE(SentinelRules(SentinelMode::kMinimal, "").measures("norm_rms"));
  EXPECT_TRUE(SentinelRules(SentinelMode::kStandard, "").measures("norm_rms"));
  EXPECT_FALSE(SentinelRules(SentinelMode::kStandard, "").measures("parameter_update_norm"));
  EXPECT_TRUE(SentinelRules(SentinelMode::kDebug, "").measures("parameter_update_norm"));
  EXPECT_TRUE(SentinelRules(SentinelMode::kDebug, "").measures("loss_spike"));
}

TEST(SentinelRules, ChangeBoundsActionsAndWhoIsMeasured) {
  const SentinelRules rules(SentinelMode::kStandard,
                            "loss_spike warn=2.5 stop=4 action=checkpoint in-a-row=3; grad_norm warn=0.5..7 ;"
                            "norm_rms off; attention_collapse warn=0.2; lr warn=..1e-3; dead_experts warn=none");
  const SentinelRow& spike = rules.row("loss_spike");
  EXPECT_EQ(spike.warn.high, 2.5);
  EXPECT_EQ(spike.stop.high, 4);
  EXPECT_EQ(spike.action, SentinelAction::kCheckpoint);
  EXPECT_EQ(spike.in_a_row, 3);
  EXPECT_TRUE(rules.row("grad_norm").warn.holds(0.5));
  EXPECT_FALSE(rules.row("grad_norm").warn.holds(0.4));
  EXPECT_FALSE(rules.row("grad_norm").warn.holds(7.1));
  EXPECT_EQ(rules.row("grad_norm").stop.high, 1e3);  // as it was
  EXPECT_FALSE(rules.measures("norm_rms"));
  // The end that the usual bound has.
  EXPECT_FALSE(rules.row("attention_collapse").warn.holds(0.1));
  EXPECT_TRUE(rules.row("attention_collapse").warn.holds(0.9));
  EXPECT_FALSE(rules.row("lr").warn.holds(2e-3));  // a row that was only recorded
  EXPECT_TRUE(rules.row("dead_experts").warn.open());
}

TEST(SentinelRules, SayWhatIsWrong) {
  using testing::AllOf, testing::HasSubstr;
  constexpr SentinelMode kOn = SentinelMode::kStandard;
  EXPECT_THAT(refusal_of(kOn, "loss_spyke warn=3"), HasSubstr("did you mean 'loss_spike'?"));
  EXPECT_THAT(refusal_of(kOn, "loss_spike"), HasSubstr("no change is given for 'loss_spike'"));
  EXPECT_THAT(refusal_of(kOn, "loss_spike warn=much"), AllOf(HasSubstr("warn=much"), HasSubstr("LOW..HIGH")));
  EXPECT_THAT(refusal_of(kOn, "grad_norm warn=3..1"), HasSubstr("has no bound"));
  EXPECT_THAT(refusal_of(kOn, "grad_norm warn=.."), HasSubstr("has no bound"));
  EXPECT_THAT(refusal_of(kOn, "grad_norm stop=nan"), HasSubstr("has no bound"));
  EXPECT_THAT(refusal_of(kOn, "grad_norm action=shout"), HasSubstr("warn, dump, checkpoint or stop"));
  EXPECT_THAT(refusal_of(kOn, "grad_norm in-a-row=0"), HasSubstr("1 or more"));
  EXPECT_THAT(refusal_of(kOn, "grad_norm louder"), HasSubstr("unknown word"));
  EXPECT_THAT(refusal_of(SentinelMode::kOff, "loss_spike warn=3"), HasSubstr("--sentinel-mode minimal"));
  EXPECT_THAT(refusal_of(SentinelMode::kMinimal, "norm_rms warn=3"), HasSubstr("--sentinel-mode standard"));
}

TEST(SentinelRules, ACheckpointNeedsAFolder) {
  TrainConfig c;
  c.sentinels.mode = SentinelMode::kMinimal;
  c.sentinels.rules = "loss_spike action=checkpoint";
  EXPECT_THROW(resolve(c), Error);
  c.save_dir = "somewhere";
  EXPECT_NO_THROW(resolve(c));
}

}  // namespace
}  // namespace ranklab
