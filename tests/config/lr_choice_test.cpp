// The learning-rate schedule, the batch and the steps that settings describe.
#include "core/config/lr_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/config/batch_choice.h"
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

// OptimizerParamScheduler of Megatron-LM in a run of --train-samples: step() adds each batch's sequences to num_steps.
double megatrons_linear(const LrSchedule& s, double decay_samples, double warmup_samples, double num_steps) {
  if (num_steps <= warmup_samples) return s.max_lr * num_steps / warmup_samples;
  if (num_steps > decay_samples) return s.min_lr;
  const double ratio = (num_steps - warmup_samples) / (decay_samples - warmup_samples);
  return s.min_lr + (1 - ratio) * (s.max_lr - s.min_lr);
}

TEST(LrChoice, WhereBatchesGrowTheRateMovesBySequences) {
  const Given given = {{"train.rampup_batch_size", "4 4 96"}, {"train.global_batch_size", "16"},
                       {"train.micro_batch_size", "4"},       {"parallel.world_size", "1"},
                       {"train.train_samples", "330"},        {"optim.lr_warmup_fraction", "0.1"},
                       {"optim.lr_decay_style", "linear"}};
  const RunPlan plan = plan_of(given);
  const LrSchedule schedule = lr_schedule_of(plan.config);
  int64_t consumed = 0;
  for (int64_t step = 0; step < plan.config.train_iters; ++step) {
    EXPECT_NEAR(schedule.at(step), megatrons_linear(schedule, 330, 33, static_cast<double>(consumed)), 1e-15) << step;
    consumed += plan.sequences_of(step);
  }
  EXPECT_GT(consumed, 300);
}

TEST(LrChoice, WhereBatchesGrowStepsOfTheScheduleAreThoseOfTheRun) {
  Given given = {{"train.rampup_batch_size", "4 4 96"}, {"train.global_batch_size", "16"},
                 {"train.micro_batch_size", "4"},       {"parallel.world_size", "1"},
                 {"train.train_iters", "40"},           {"optim.lr_warmup_iters", "10"},
                 {"optim.lr_decay_style", "WSD"},       {"optim.lr_wsd_decay_iters", "12"}};
  const RunPlan plan = plan_of(given);
  const LrSchedule schedule = lr_schedule_of(plan.config);
  const auto& c = plan.config;
  EXPECT_LT(schedule.at(9), c.lr);
  EXPECT_DOUBLE_EQ(schedule.at(10), c.lr);
  EXPECT_DOUBLE_EQ(schedule.at(28), c.lr);
  EXPECT_LT(schedule.at(29), c.lr);
  EXPECT_DOUBLE_EQ(schedule.at(40), c.min_lr);
  // 8 batches of 4 come first, then 4 of 8: step 8 ends 32 of the 36 sequences and more that the warm-up takes.
  EXPECT_DOUBLE_EQ(schedule.at(8), c.lr * 32 / static_cast<double>(plan.ramp.samples_before(10)));
}

// Megatron-LM's --lr-warmup-samples and --lr-decay-samples, which are no whole batches, with batches that grow and such
// that do not; a run of --train-samples decays over all of them, also those that make no batch.
TEST(LrChoice, SequencesNeedBeNoWholeBatches) {
  const Given run = {{"train.global_batch_size", "16"},  {"train.micro_batch_size", "4"},
                     {"parallel.world_size", "1"},       {"train.train_samples", "330"},
                     {"optim.lr_decay_style", "linear"}, {"optim.lr_warmup_samples", "37"}};
  struct Case {
    Given more;
    double decay_samples;
  };
  for (const auto& [more, decay_samples] :
       {Case{{}, 330}, Case{{{"optim.lr_decay_samples", "250"}}, 250},
        Case{{{"train.rampup_batch_size", "4 4 96"}}, 330},
        Case{{{"train.rampup_batch_size", "4 4 96"}, {"optim.lr_decay_samples", "250"}}, 250}}) {
    Given given = run;
    given.insert(given.end(), more.begin(), more.end());
    const RunPlan plan = plan_of(given);
    const LrSchedule schedule = lr_schedule_of(plan.config);
    int64_t consumed = 0;
    for (int64_t step = 0; step < plan.config.train_iters; ++step) {
      EXPECT_NEAR(schedule.at(step), megatrons_linear(schedule, decay_samples, 37, static_cast<double>(consumed)),
                  1e-15)
          << decay_samples << ", step " << step;
      consumed += plan.sequences_of(step);
    }
  }
}

// As Megatron-LM's scheduler, whose num_steps is in the checkpoint; a schedule in steps goes by these.
TEST(LrChoice, ARunThatGoesOnWithOtherBatchesCountsTheSequencesBefore) {
  const Given run = {{"train.global_batch_size", "4"},
                     {"parallel.world_size", "1"},
                     {"train.train_iters", "40"},
                     {"optim.lr_decay_style", "linear"}};
  const DataCursor cursor{.step = 4, .samples = 32};  // of 8 each
  const RunPlan in_steps = plan_of(run);
  const RunPlan goes_on = plan_from(in_steps, cursor);
  for (const int64_t step : {4, 5, 20}) {
    EXPECT_EQ(lr_schedule_of(goes_on.config, goes_on.ramp).at(step), lr_schedule_of(in_steps.config).at(step)) << step;
  }
  Given in_samples = run;
  in_samples.emplace_back("optim.lr_warmup_samples", "11");
  const RunPlan plan = plan_of(in_samples);
  EXPECT_TRUE(ramp_reaches(plan, {.step = 8, .samples = 32}));
  ASSERT_FALSE(ramp_reaches(plan, cursor));
  const RunPlan resumed = plan_from(plan, cursor);
  const LrSchedule schedule = lr_schedule_of(resumed.config, resumed.ramp);
  for (const int64_t step : {4, 5, 20})
    EXPECT_NEAR(schedule.at(step),
                megatrons_linear(schedule, 32 + 36 * 4, 11, static_cast<double>(32 + 4 * (step - 4))), 1e-15);
}

// Where the run's length is in sequences, so are its warm-up and decay, also those that nobody gave.
TEST(LrChoice, ARunOfSequencesGoesOnWithOtherBatchesOnTheSameCurve) {
  for (const char* const style : {"cosine", "WSD"}) {
    const auto plan = [&](const char* batch) {
      return plan_of({{"train.global_batch_size", batch},
                      {"train.micro_batch_size", "4"},
                      {"parallel.world_size", "1"},
                      {"train.train_samples", "640"},
                      {"optim.lr_decay_style", style}});
    };
    const RunPlan begun = plan("8"), resumed = plan_from(plan("16"), {.step = 40, .samples = 320});
    const LrSchedule before = lr_schedule_of(begun.config, begun.ramp),
                     after = lr_schedule_of(resumed.config, resumed.ramp);
    for (const int64_t step : {0, 1, 10, 19}) EXPECT_EQ(after.at(40 + step), before.at(40 + 2 * step)) << step;
  }
}

TEST(LrChoice, TheLastSequencesOfWsdAreCountedInEitherUnit) {
  const Given run = {{"train.global_batch_size", "16"}, {"train.micro_batch_size", "4"},
                     {"parallel.world_size", "1"},      {"train.train_iters", "40"},
                     {"optim.lr_decay_style", "WSD"},   {"optim.lr_decay_samples", "600"}};
  const auto last = [&](const Given& more) {
    Given given = run;
    given.insert(given.end(), more.begin(), more.end());
    return lr_schedule_of(plan_of(given).config).wsd_decay_steps;
  };
  EXPECT_EQ(last({{"optim.lr_wsd_decay_samples", "70"}}), 70);
  EXPECT_EQ(last({{"optim.lr_wsd_decay_iters", "5"}}), 600 - 16 * (37 - 5));  // 37 whole batches are in 600
  EXPECT_EQ(last({}), 60);
}

TEST(LrChoice, ContradictionsAreNamed) {
  EXPECT_THAT(refused({{"optim.lr_warmup_iters", "5"}, {"optim.lr_warmup_fraction", "0.1"}}),
              AllOf(HasSubstr("flag optim.lr_warmup_iters"), HasSubstr("--lr-warmup-fraction 0.1"),
                    HasSubstr("leave one of them out")));
  EXPECT_THAT(refused({{"optim.lr_decay_style", "WSD"}, {"optim.lr_wsd_decay_iters", "201"}}),
              AllOf(HasSubstr("--lr-wsd-decay-iters 201"), HasSubstr("1 to 200")));
  EXPECT_THAT(refused({{"optim.lr_warmup_samples", "50"}, {"optim.lr_warmup_fraction", "0.1"}}),
              HasSubstr("--lr-warmup-samples and --lr-warmup-fraction contradict each other"));
  EXPECT_THAT(refused({{"optim.lr_decay_samples", "50"}, {"optim.lr_decay_iters", "10"}}),
              HasSubstr("--lr-decay-iters 10, --lr-decay-samples 50"));
  EXPECT_THAT(refused({{"optim.lr_warmup_samples", "50"}, {"optim.lr_decay_samples", "50"}}),
              AllOf(HasSubstr("a warm-up of 50 sequences, decay over 50"), HasSubstr("lower --lr-warmup-samples")));
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

// 32 sequences are done, in 4 steps of 8; what is left of 100 makes steps of the new size.
TEST(BatchChoice, ARunOfSamplesThatResumesTrainsOnThoseThatAreLeft) {
  const DataCursor cursor{.step = 4, .samples = 32};
  const auto end = [&](Given given) {
    given.insert(given.end(),
                 {{"train.train_samples", "100"}, {"train.micro_batch_size", "4"}, {"parallel.world_size", "1"}});
    return steps_of_run(plan_from(plan_of(given), cursor));
  };
  EXPECT_EQ(end({{"train.global_batch_size", "8"}}), 12);
  EXPECT_EQ(end({{"train.global_batch_size", "16"}}), 4 + 4);
  EXPECT_EQ(end({{"train.global_batch_size", "4"}}), 4 + 17);
  EXPECT_EQ(end({{"train.global_batch_size", "100"}}), 4);
  EXPECT_EQ(end({{"train.global_batch_size", "16"}, {"train.rampup_batch_size", "4 4 48"}}), 4 + 1 + 3)
      << "12 sequences, then 16 each";
  EXPECT_EQ(steps_of_run(plan_from(plan_of({{"train.train_iters", "9"}}), cursor)), 9);
}

TEST(BatchChoice, OnlyACheckpointSaysWhereARunOfSamplesEnds) {
  TrainConfig config;
  config.train_iters = 5;
  config.load = "folder";
  EXPECT_TRUE(knows_its_end(config));
  EXPECT_EQ(run_length_text(config), "--train-iters 5");
  config.train_samples = 100;
  EXPECT_FALSE(knows_its_end(config));
  EXPECT_EQ(run_length_text(config), "--train-samples 100");
  config.finetune = true;
  EXPECT_TRUE(knows_its_end(config)) << "it starts over";
}

TEST(WeightDecayChoice, GoesOnFromTheSequencesConsumed) {
  const RunPlan plan = plan_of({{"optim.weight_decay_incr_style", "linear"},
                                {"optim.start_weight_decay", "0"},
                                {"optim.end_weight_decay", "0.5"},
                                {"train.global_batch_size", "4"},
                                {"parallel.world_size", "1"},
                                {"train.train_samples", "80"}});
  const DataCursor cursor{.step = 5, .samples = 40};
  ASSERT_FALSE(ramp_reaches(plan, cursor));
  EXPECT_DOUBLE_EQ(weight_decay_schedule_of(plan.config, plan_from(plan, cursor).ramp).at(5), 0.25);
}

TEST(WeightDecayChoice, IsOfTheRunsSequences) {
  const RunPlan plan = plan_of({{"optim.weight_decay_incr_style", "linear"},
                                {"optim.start_weight_decay", "0"},
                                {"optim.end_weight_decay", "0.5"},
                                {"train.train_iters", "10"}});
  const WeightDecaySchedule s = weight_decay_schedule_of(plan.config, plan.ramp);
  EXPECT_DOUBLE_EQ(s.at(0), 0);
  EXPECT_DOUBLE_EQ(s.at(4), 0.2);
  EXPECT_DOUBLE_EQ(s.at(10), 0.5);
  const RunPlan constant = plan_of({{"optim.weight_decay", "0.3"}});
  EXPECT_DOUBLE_EQ(weight_decay_schedule_of(constant.config, constant.ramp).at(7), 0.3);
}

TEST(WeightDecayChoice, OneThatChangesWantsBothEnds) {
  EXPECT_THAT(refused({{"optim.weight_decay_incr_style", "cosine"}, {"optim.end_weight_decay", "0.5"}}),
              AllOf(HasSubstr("no --start-weight-decay, --end-weight-decay 0.5"), HasSubstr("pass both")));
  EXPECT_THAT(refused({{"optim.weight_decay_incr_style", "linear"},
                       {"optim.start_weight_decay", "-0.5"},
                       {"optim.end_weight_decay", "0.5"}}),
              AllOf(HasSubstr("--start-weight-decay -0.5"), HasSubstr("0 or more")));
}

}  // namespace
}  // namespace ranklab
