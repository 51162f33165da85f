// Configurations of torchtitan as settings: every line of torchtitan_lines.txt, and that what is printed trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

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
  }
  expect_meanings("from-torchtitan", lines);
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
