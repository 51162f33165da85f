// Which checkpoint a run resumes from, and which settings it may change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <sstream>

#include "core/base/error.h"
#include "core/checkpoint/run_folder.h"
#include "core/config/settings/flags.h"
#include "core/runtime/checkpoint/settings.h"
#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Settings kAlone = kTinyRun + kDense + Settings{{"parallel.world_size", "1"}};

TEST(CheckpointChoices, ANewerLinkIsToldAndTakenWhenItIsNamed) {
  const std::string run = temporary_path("ranklab_link");
  train(kAlone + saving(run, 2));
  std::filesystem::rename(run + "/step_00000006", run + "/elsewhere");
  std::filesystem::create_directory_symlink("elsewhere", run + "/step_00000006");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(train(kAlone + loading(run))->first_step, 4);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("a link"), HasSubstr("step_00000006'"), Not(HasSubstr("step_00000004"))));
  EXPECT_EQ(train(kAlone + loading(run + "/step_00000006"))->first_step, 6);
}

TEST(CheckpointChoices, RotaryPositionsMayBeOthersWhenFinetuning) {
  const std::string run = temporary_path("ranklab_positions");
  train(kAlone + saving(run), 1);
  const Settings longer = {{"model.seq_length", "32"}, {"model.rope_theta", "500000"}, {"yarn.scaling_factor", "2"}};
  const auto refused = [&](const Settings& settings) -> std::string {
    try {
      train(settings + loading(run), 2);
    } catch (const Error& error) {
      return error.what();
    }
    return "trained";
  };
  EXPECT_THAT(refused(kAlone + Settings{{"model.rope_theta", "500000"}}), HasSubstr("--rotary-base 500000"));
  const Settings tuning = {{"checkpoint.finetune", "true"}};
  EXPECT_THAT(train(kAlone + longer + tuning + loading(run), 1)->loaded,
              AllOf(HasSubstr("--rotary-base 500000, saved with 10000"), HasSubstr("--seq-length 32, saved with"),
                    HasSubstr("--rotary-scaling-factor 2, saved with 1")));
  EXPECT_THAT(refused(kAlone + tuning + Settings{{"model.rotary_percent", "0.5"}}), HasSubstr("--rotary-percent"));
}

// The weights of one module and of two are not each other's.
TEST(CheckpointChoices, ARepeatedMtpModuleStaysOne) {
  const std::string run = temporary_path("ranklab_repeated");
  const Settings two = {{"mtp.num_layers", "2"}}, one = {{"mtp.use_repeated_layer", "true"}};
  train(kAlone + two + one + saving(run), 1);
  EXPECT_EQ(train(kAlone + two + one + loading(run), 2)->first_step, 1);
  try {
    train(kAlone + two + loading(run), 2);
    ADD_FAILURE() << "it trained";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("got --mtp-use-repeated-layer false"),
                                    HasSubstr("want --mtp-use-repeated-layer true, as saved")));
  }
}

TEST(CheckpointChoices, ASettingThatTheCheckpointDoesNotKnowWasOff) {
  const Settings two = {{"mtp.num_layers", "2"}}, one = {{"mtp.use_repeated_layer", "true"}};
  CheckpointManifest manifest;
  describe_run(plan_of(kAlone + two), {}, manifest);
  ASSERT_EQ(manifest.model.erase("mtp.use_repeated_layer"), 1u);
  EXPECT_NO_THROW(check_resumable(manifest, plan_of(kAlone + two), {}, "run"));
  try {
    check_resumable(manifest, plan_of(kAlone + two + one), {}, "run");
    ADD_FAILURE() << "it is resumed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("got --mtp-use-repeated-layer true; want --mtp-use-repeated-layer false"));
  }
}

// All differing settings are reported together, by their flags.
TEST(CheckpointChoices, OfAnotherModelTheFlagsOfTheSavedOneAreTold) {
  const std::string run = temporary_path("ranklab_other");
  const Settings bias = {{"model.add_bias", "true"}};
  train(kAlone + bias + saving(run), 1);
  const auto message = [&](const Settings& settings) -> std::string {
    try {
      train(settings + loading(run), 2);
    } catch (const Error& error) {
      return error.what();
    }
    return "trained";
  };
  const std::string all = message(kTinyRun + Settings{{"parallel.world_size", "1"}, {"model.num_layers", "4"}});
  EXPECT_THAT(all, AllOf(HasSubstr("got --add-bias-linear false, --ffn-hidden-size 352, --hidden-size 128"),
                         HasSubstr("want --add-bias-linear true, --ffn-hidden-size 48, --hidden-size 32")));
  const size_t at = all.find("pass --preset gpt_tiny ");
  ASSERT_NE(at, std::string::npos) << all;
  std::istringstream words(all.substr(at + std::string("pass ").size()));
  const MergedConfig told =
      merge_config(TrainConfig{}, flag_settings({std::istream_iterator<std::string>(words), {}}, "test"));
  EXPECT_EQ(model_settings(told.config), model_settings(plan_of(kAlone + bias).config));
  EXPECT_EQ(message(kAlone + bias), "trained");
}

// A resumed run may change them, but not silently.
TEST(CheckpointChoices, ChangedSettingsOfTheCurveAreTold) {
  const std::string run = temporary_path("ranklab_changed");
  train(kAlone + saving(run), 2);
  const std::string plain = train(kAlone + loading(run), 3)->loaded;
  EXPECT_THAT(plain, Not(HasSubstr("settings that")));
  const Settings other = {{"optim.lr", "0.5"}, {"model.dropout", "0.25"}, {"parallel.world_size", "2"}};
  EXPECT_THAT(
      train(kAlone + other + loading(run), 3)->loaded,
      AllOf(HasSubstr("; settings that changed: --hidden-dropout 0.25 (0), --lr 0.5 ("), Not(HasSubstr("world"))));
}

// What a run trains on, in which numbers and batches, is told; how and where it is computed is nobody's concern.
TEST(CheckpointChoices, EverySettingThatMayMoveTheCurveIsTold) {
  const auto told = [](const Settings& saved, const Settings& now) {
    CheckpointManifest manifest;
    describe_run(plan_of(kAlone + saved), {}, manifest);
    return other_training(manifest, plan_of(kAlone + now).config);
  };
  const Settings documents = {{"data.reset_attention_mask", "true"},
                              {"data.reset_position_ids", "true"},
                              {"data.eod_mask_loss", "true"},
                              {"data.eod_token", "10"}};
  EXPECT_EQ(told(documents, {}),
            "; settings that changed: --eod-mask-loss false (true), --eod-token 0 (10), --reset-attention-mask false "
            "(true), --reset-position-ids false (true)");
  EXPECT_EQ(told({}, {{"train.rampup_batch_size", "4 4 80"}, {"train.micro_batch_size", "4"}}),
            "; settings that changed: --rampup-batch-size 4 4 80 (none)");
  EXPECT_EQ(told({}, {{"train.bf16", "true"}}), "; settings that changed: --bf16 true (false)");
  EXPECT_THAT(told({}, {{"precision.recipe", "mxfp8"}}),
              HasSubstr("; settings that changed: --precision-recipe mxfp8"));
  EXPECT_EQ(told({{"train.train_iters", "4"}, {"train.train_samples", "32"}},
                 {{"train.train_iters", "2"}, {"train.train_samples", "32"}, {"train.global_batch_size", "16"}}),
            "; settings that changed: --global-batch-size 16 (8)")
      << "the steps follow";
  const Settings elsewhere = {{"parallel.world_size", "8"},
                              {"parallel.tp", "2"},
                              {"parallel.pp", "2"},
                              {"parallel.zero_stage", "1"},
                              {"train.num_microbatches", "4"},
                              {"memory.recompute_granularity", "full"},
                              {"data.eval_interval", "3"},
                              {"log.interval", "2"},
                              {"log.dir", "elsewhere"},
                              {"sim.hardware", "a100-80"},
                              {"trace.enabled", "true"}};
  EXPECT_EQ(told({}, elsewhere), "");
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
