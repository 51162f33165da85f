// Command lines of Megatron-LM as settings: every line of megatron_lines.txt, and that what is printed trains.
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

constexpr const char* kSmall =
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 2";

std::vector<SettingLine> lines() {
  std::vector<SettingLine> all = setting_lines(RANKLAB_TEST_DIR "/megatron_lines.txt");
  for (SettingLine& line : all) {
    if (line.words.starts_with("SMALL")) line.words.replace(0, 5, kSmall);
    for (const char* special : {"(", ")", "*", "$", "|"})  // that the shell would take
      for (size_t at = 0; (at = line.words.find(special, at)) != std::string::npos; at += 2)
        line.words.insert(at, "\\");
  }
  return all;
}

TEST(FromMegatron, EveryLineMeansWhatItMeansThere) {
  EXPECT_GE(lines().size(), 30U);
  expect_meanings("from-megatron", lines());
}

// GPT-3 has 175 billion parameters, and DeepSeek-V3 671 with its module that predicts one token further.
TEST(FromMegatron, WhatIsPrintedIsAPlansConfig) {
  const std::string file = temporary_path("from_megatron.toml");
  const auto dry_run = [&](const std::string& words) {
    const Outcome written = ranklab("config from-megatron -- " + words);
    EXPECT_EQ(written.exit_code, 0) << written.output;
    std::ofstream(file) << written.output;
    return ranklab_and_errors("train --strict --dry-run --config " + file).output;
  };
  const std::vector<SettingLine> all = lines();
  EXPECT_THAT(dry_run(all.at(0).words), HasSubstr("175B parameters, 96 layers, hidden 12288"));
  EXPECT_THAT(dry_run(all.at(1).words), HasSubstr("custom model: 8.03B parameters"));
  EXPECT_THAT(dry_run(all.at(3).words), HasSubstr("671B parameters"));
}

TEST(FromMegatron, WhatIsPrintedTrains) {
  const std::string file = temporary_path("from_megatron_small.toml"), folder = temporary_path("from_megatron_run");
  const std::string line = std::string(kSmall) +
                           " --vocab-size 300 --tokenizer-type NullTokenizer --tensor-model-parallel-size 2 "
                           "--pipeline-model-parallel-size 2 --nproc_per_node 8 --global-batch-size 8 --train-iters 2 "
                           "--lr 1e-3 --use-distributed-optimizer --sequence-parallel --mock-data";
  std::ofstream(file) << ranklab("config from-megatron -- " + line).output;
  const Outcome run = ranklab_and_errors("train --config " + file + " --sample-tokens 0 --log-dir " + folder);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("pp 2 x dp 2 x tp 2"));
}

}  // namespace
}  // namespace ranklab
