// The learning-rate schedule, the batch and the steps that settings describe.
#include "core/config/lr_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Given = std::vector<std::pair<std::string, std::string>>;

MergedConfig merged_of(const Given& given) {
  std::vector<ConfigSetting> settings;
  for (const auto& [key, text] : given) settings.push_back({key, text, "flag " + key});
  return merge_config({}, settings);
}

RunPlan plan_of(const Given& given) {
  const MergedConfig merged = merged_of(given);
  return resolve(merged.config, merged.origins);
}

std::string refused(const Given& given) {
  try {
    plan_of(given);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(LrChoice, TheWarmupIsATenthOrCountedOrAPart) {
  EXPECT_EQ(lr_schedule_of(plan_of({{"train.train_iters", "250"}}).config).warmup_steps, 25);
  EXPECT_EQ(lr_schedule_of(plan_of({{"optim.lr_warmup_iters", "7"}}).config).warmup_steps, 7);
  EXPECT_EQ(lr_schedule_of(plan_of({{"optim.lr_warmup_fraction", "0"}}).config).warmup_steps, 0);
  const Given part = {{"train.train_iters", "250"}, {"optim.lr_warmup_fraction", "0.01"}};
  EXPECT_DOUBLE_EQ(lr_schedule_of(plan_of(part).config).warmup_steps, 2.5);
  Given of_decay = part;
  of_decay.emplace_back("optim.lr_decay_iters", "1000");
  const TrainConfig config = plan_of(of_decay).config;
  EXPECT_DOUBLE_EQ(lr_schedule_of(config).warmup_steps, 10);
  EXPECT_EQ(lr_schedule_of(config).decay_steps, 1000);
  EXPECT_DOUBLE_EQ(lr_schedule_of(resolve(config).config).warmup_steps, 10);  // also resolved again
}

TEST(LrChoice, EveryStyleReachesTheSchedule) {
  const std::vector<std::pair<std::string, LrDecay>> styles = {
      {"constant", LrDecay::kConstant}, {"cosine", LrDecay::kCosine},
      {"linear", LrDecay::kLinear},     {"inverse-square-root", LrDecay::kInverseSquareRoot},
      {"WSD", LrDecay::kWsd},           {"exponential", LrDecay::kExponential}};
  for (const auto& [name, kind] : styles)
    EXPECT_EQ(lr_schedule_of(plan_of({{"optim.lr_decay_style", name}}).config).kind, kind) << name;
  const std::vector<std::pair<std::string, WsdDecay>> shapes = {{"exponential", WsdDecay::kExponential},
                                                                {"linear", WsdDecay::kLinear},
                                                                {"cosine", WsdDecay::kCosine},
                                                                {"minus_sqrt", WsdDecay::kMinusSqrt}};
  for (const auto& [name, shape] : shapes) {
    const LrSchedule schedule = lr_schedule_of(
        plan_of({{"optim.lr_decay_style", "WSD"}, {"optim.lr_wsd_decay_style", name}, {"train.train_iters", "50"}})
            .config);
    EXPECT_EQ(schedule.wsd_decay, shape) << name;
    EXPECT_EQ(schedule.wsd_decay_steps, 5) << name;  // a tenth
  }
}

TEST(LrChoice, ContradictionsAreNamed) {
  EXPECT_THAT(refused({{"optim.lr_warmup_iters", "5"}, {"optim.lr_warmup_fraction", "0.1"}}),
              AllOf(HasSubstr("flag optim.lr_warmup_iters"), HasSubstr("--lr-warmup-fraction 0.1"),
                    HasSubstr("leave one of them out")));
  EXPECT_THAT(refused({{"optim.lr_decay_style", "WSD"}, {"optim.lr_wsd_decay_iters", "201"}}),
              AllOf(HasSubstr("--lr-wsd-decay-iters 201"), HasSubstr("1 to 200")));
  EXPECT_THAT(refused({{"optim.lr_warmup_fraction", "-0.5"}}), HasSubstr("--lr-warmup-fraction is out of range"));
  EXPECT_THAT(refused({{"optim.lr_warmup_fraction", "1"}}), HasSubstr("--lr-warmup-fraction is out of range"));
  EXPECT_EQ(refused({{"train.train_iters", "0"}}), "accepted");
}

TEST(BatchChoice, TokensAndSamplesBecomeSequencesAndSteps) {
  const Given tokens = {{"model.seq_length", "64"}, {"train.global_batch_tokens", "1024"}};
  EXPECT_EQ(plan_of(tokens).config.global_batch_size, 16);
  EXPECT_EQ(merged_of(tokens).origins.at("train.global_batch_size"), "flag train.global_batch_tokens");
  Given samples = tokens;
  samples.emplace_back("train.train_samples", "100");
  EXPECT_EQ(plan_of(samples).config.train_iters, 6);  // 4 sequences are left
  EXPECT_EQ(plan_of(samples).config.global_batch_size, 16);
  // A preset's batch gives way.
  EXPECT_EQ(plan_of({{"model.preset", "peer_s"}, {"model.seq_length", "64"}, {"train.global_batch_tokens", "1024"}})
                .config.global_batch_size,
            16);
}

TEST(BatchChoice, ContradictionsAreNamed) {
  const Given tokens = {{"model.seq_length", "64"}, {"train.global_batch_tokens", "1024"}};
  Given both = tokens;
  both.emplace_back("train.global_batch_size", "32");
  EXPECT_THAT(refused(both), AllOf(HasSubstr("--global-batch-tokens 1024, --global-batch-size 32"),
                                   HasSubstr("want --global-batch-size 16")));
  both.back().second = "16";
  EXPECT_EQ(refused(both), "accepted");  // as in a file that names every setting
  EXPECT_THAT(refused({{"model.seq_length", "64"}, {"train.global_batch_tokens", "1000"}}),
              AllOf(HasSubstr("--global-batch-tokens 1000, --seq-length 64"), HasSubstr("a multiple")));
  EXPECT_THAT(refused({{"train.train_samples", "8"}}), HasSubstr("--train-samples 8, --global-batch-size 32"));
  EXPECT_THAT(refused({{"train.train_samples", "640"}, {"train.train_iters", "21"}}),
              HasSubstr("want --train-iters 20"));
}

}  // namespace
}  // namespace ranklab
