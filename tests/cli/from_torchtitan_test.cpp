// Configurations of torchtitan as settings: every line of torchtitan_lines.txt, and that what is printed trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/config/lr_choice.h"
#include "tests/cli/foreign_configs.h"
#include "tests/cli/ranklab_program.h"
#include "tests/cli/setting_lines.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

const std::string kFile = RANKLAB_TEST_DIR "/torchtitan_run.toml";

TEST(FromTorchtitan, EveryLineMeansWhatItMeansThere) {
  std::vector<SettingLine> lines = setting_lines(RANKLAB_TEST_DIR "/torchtitan_lines.txt");
  EXPECT_GE(lines.size(), 20U);
  for (SettingLine& line : lines) {
    const size_t at = line.words.find("FILE");
    const size_t file = line.words.find("CONFIG_FILE") == std::string::npos ? at : line.words.find("FILE", at + 4);
    if (file != std::string::npos) line.words.replace(file, 4, kFile);
    if (const size_t stages = line.words.find("STAGES"); stages != std::string::npos)
      line.words.replace(stages, 6, RANKLAB_TEST_DIR "/torchtitan_stages.toml");
  }
  expect_meanings("from-torchtitan", lines);
}

struct TitanSchedule {
  int64_t steps, warmup;
  std::optional<double> decay_ratio = {};
  std::string decay_type = "linear";
  double least = 0;

  // What torchtitan/components/lr_scheduler.py multiplies the rate of step k by.
  double factor(int64_t k) const {
    const int64_t up = std::min(warmup, steps);
    const int64_t down = decay_ratio
                             ? std::min<int64_t>(std::llrint(static_cast<double>(steps) * *decay_ratio), steps - up)
                             : steps - up;
    if (k < up) return static_cast<double>(k + 1) / static_cast<double>(up);
    const int64_t whole_until = steps + 1 - down;
    if (k < whole_until) return 1;
    const double progress = static_cast<double>(k + 1 - whole_until) / static_cast<double>(down);
    const double left = decay_type == "linear" ? 1 - progress
                        : decay_type == "sqrt" ? 1 - std::sqrt(progress)
                                               : 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return least + (1 - least) * left;
  }
};

TEST(FromTorchtitan, EachStepHasTheRateThatItHasThere) {
  const std::vector<TitanSchedule> schedules = {{20, 5},
                                                {20, 5, {}, "cosine", 0.1},
                                                {20, 5, 0.3, "sqrt", 0.05},
                                                {21, 4, 0.5, "linear"},  // 10.5 steps are rounded to 10
                                                {20, 5, 0.9},            // more than there are behind the warm-up
                                                {20, 5, 0.0},
                                                {20, 0},
                                                {20, 1, {}, "sqrt"},
                                                {20, 20},
                                                {20, 200}};
  for (const TitanSchedule& schedule : schedules) {
    std::string words = "NGPU=2 --model.flavor debugmodel --optimizer.lr 0.002 --training.steps " +
                        std::to_string(schedule.steps) + " --lr_scheduler.warmup_steps " +
                        std::to_string(schedule.warmup) + " --lr_scheduler.decay_type " + schedule.decay_type +
                        " --lr_scheduler.min_lr_factor " + std::to_string(schedule.least);
    if (schedule.decay_ratio) words += " --lr_scheduler.decay_ratio " + std::to_string(*schedule.decay_ratio);
    SCOPED_TRACE(words);
    TrainConfig config;
    const nlohmann::json settings = answer_of(ranklab("config from-torchtitan --json -- " + words)).at("settings");
    for (const auto& [key, setting] : settings.items()) {
      const nlohmann::json& value = setting.at("value");
      if (key.starts_with("optim.") || key == "train.train_iters")
        set_config_field(config, key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    const LrSchedule own = lr_schedule_of(config);
    own.validate();
    for (int64_t k = 0; k < schedule.steps; ++k)
      EXPECT_NEAR(own.at(k), 0.002 * schedule.factor(k), 1e-12) << "step " << k;
  }
}

TEST(FromTorchtitan, FilesThatAreNoConfigurationAreNamed) {
  EXPECT_THAT(ranklab_and_errors("config from-torchtitan NGPU=8 no_such_file.toml").output,
              HasSubstr("cannot read 'no_such_file.toml'"));
  const std::string file = temporary_path("from_torchtitan_damaged.toml");
  std::ofstream(file) << "[model]\nname = \n";
  const Outcome run = ranklab_and_errors("config from-torchtitan NGPU=8 " + file);
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr(file + ":2"));
}

// A file of torch.distributed.pipelining's, for as many microbatches as the line has.
TEST(FromTorchtitan, ASchedulesFileIsReadHereToo) {
  const std::string file = temporary_path("from_torchtitan") + ".csv";
  ASSERT_EQ(
      ranklab_and_errors("schedule export 1f1b --pp 2 --num-microbatches 8 --dialect torch --out " + file).exit_code,
      0);
  const nlohmann::json settings =
      answer_of(ranklab("config from-torchtitan --json -- NGPU=2 --model.flavor debugmodel "
                        "--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule_csv " +
                        file))
          .at("settings");
  EXPECT_EQ(settings.at("parallel.pipeline_schedule").at("value"), file);
}

TEST(FromTorchtitan, WhatIsPrintedTrains) {
  const std::string file = temporary_path("from_torchtitan.toml"), folder = temporary_path("from_torchtitan_run");
  std::ofstream(file)
      << ranklab("config from-torchtitan -- NGPU=8 " + kFile +
                 " --model.flavor debugmodel --training.seq_len 64 --training.steps 2 --model.converters \"\" "
                 "--checkpoint.enable false --parallelism.pipeline_parallel_degree 2 "
                 "--training.local_batch_size 4")
             .output;
  const Outcome run = ranklab_and_errors("train --config " + file + " --sample-tokens 0 --log-dir " + folder);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("pp 2 x dp 2 x tp 2"));
}

}  // namespace
}  // namespace ranklab
