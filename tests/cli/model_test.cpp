// ranklab model info as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

Outcome info(const std::string& arguments) { return run_command(RANKLAB_PROGRAM " model info " + arguments + " 2>&1"); }

nlohmann::json data_of(const std::string& arguments) {
  const Outcome run = info(arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output).at("data");
}

TEST(ModelInfo, CountsTheModelAndARankOfALayout) {
  const auto whole = data_of("llama_8b --world-size 1 --gbs 1");
  EXPECT_EQ(whole.at("total_parameters"), 8030261248);
  EXPECT_EQ(whole.at("active_parameters"), 8030261248);
  EXPECT_EQ(whole.at("rank").at("parameters_bytes"), 4 * 8030261248);
  EXPECT_EQ(whole.at("rank").at("optimizer_bytes"), 8 * 8030261248);
  EXPECT_EQ(whole.at("modules")[0].at("shape"), (std::vector<int64_t>{128256, 4096}));
  // 65 norms of 4096 are on every tensor-parallel rank, all else is split.
  const auto split = data_of("llama_8b --world-size 8 --tp 8 --gbs 1");
  EXPECT_EQ(split.at("rank").at("parameters_bytes"), 4 * ((8030261248 - 65 * 4096) / 8 + 65 * 4096));
}

TEST(ModelInfo, TakesTheSettingsOfTrain) {
  EXPECT_EQ(data_of("gpt_tiny --num-layers 8").at("modules")[2].at("copies"), 8);
  EXPECT_THAT(info("gpt_tiny").output, HasSubstr("pp 2 (1f1b) x dp 2 x tp 2"));
  EXPECT_THAT(info("gpt2_124m --markdown").output,
              HasSubstr("| `head.weight` | [50257, 768] | 1 | 0 | the embedding |"));
  const Outcome typo = info("gpt_tny");
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_THAT(typo.output, HasSubstr("did you mean 'gpt_tiny'"));
}

}  // namespace
}  // namespace ranklab
