// Command lines of Megatron-LM as settings: every line of megatron_lines.txt, and that what is printed trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/settings/fields.h"
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
    for (const char* special : {"(", ")", "*", "$"})  // that the shell would take
      for (size_t at = 0; (at = line.words.find(special, at)) != std::string::npos; at += 2)
        line.words.insert(at, "\\");
  }
  return all;
}

void expect_setting(const nlohmann::json& settings, const std::string& part) {
  const size_t equals = part.find('=');
  const std::string key = part.substr(0, equals), want = part.substr(equals + 1);
  if (settings.contains(key)) {
    const nlohmann::json& value = settings.at(key).at("value");
    EXPECT_TRUE(is_value(value, want)) << part << ", got " << value;
  } else {  // the value that it has anyway
    EXPECT_EQ(find_field(key)->get(TrainConfig{}), want) << key;
  }
}

TEST(FromMegatron, EveryLineMeansWhatItMeansThere) {
  int rows = 0;
  for (const SettingLine& line : lines()) {
    SCOPED_TRACE(line.how + " " + line.words);
    ++rows;
    if (line.how == "refuse") {
      const Outcome run = ranklab_and_errors("config from-megatron " + line.words);
      EXPECT_EQ(run.exit_code, 2) << run.output;
      for (const std::string& part : line.parts) EXPECT_THAT(run.output, HasSubstr(part));
      continue;
    }
    const nlohmann::json data = answer_of(ranklab("config from-megatron --json -- " + line.words));
    for (const std::string& part : line.parts) {
      if (line.how == "show")
        expect_setting(data.at("settings"), part);
      else
        EXPECT_THAT(data.at("left_out").dump(), HasSubstr("\"" + part + ": "));
    }
  }
  EXPECT_GE(rows, 30);
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
  EXPECT_THAT(dry_run(all.at(1).words), HasSubstr("8.03B parameters"));
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
