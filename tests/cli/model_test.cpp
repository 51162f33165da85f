// ranklab model info as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

Outcome info(const std::string& arguments) { return run_command(RANKLAB_PROGRAM " model info " + arguments + " 2>&1"); }

nlohmann::json info_of(const std::string& arguments) { return answer_of(info(arguments + " --json")); }

TEST(ModelInfo, CountsTheModelAndARankOfALayout) {
  const auto whole = info_of("llama_8b --world-size 1 --gbs 1");
  EXPECT_EQ(whole.at("total_parameters"), 8030261248);
  EXPECT_EQ(whole.at("active_parameters"), 8030261248);
  EXPECT_EQ(whole.at("rank").at("memory_bytes").at("parameters"), 4 * 8030261248);
  EXPECT_EQ(whole.at("rank").at("memory_bytes").at("optimizer"), 8 * 8030261248 + 8 /* two counters of steps */);
  EXPECT_EQ(whole.at("modules")[0].at("shape"), (std::vector<int64_t>{128256, 4096}));
  // 65 norms of 4096 are on every tensor-parallel rank, all else is split.
  const auto split = info_of("llama_8b --world-size 8 --tp 8 --gbs 1");
  EXPECT_EQ(split.at("rank").at("memory_bytes").at("parameters"), 4 * ((8030261248 - 65 * 4096) / 8 + 65 * 4096));
}

TEST(ModelInfo, DeepSeekV3IsThePublishedOne) {
  // 64 ranks share the experts of a pipeline stage of 4 layers: 4 of 256 experts each, all else whole.
  const std::string layout = "deepseek_v3 --world-size 2048 --pp 16 --ep 64 --tp 1 --gbs 15360 --mbs 1";
  const auto whole = info_of(layout);
  EXPECT_EQ(whole.at("total_parameters"), 671026404352);
  EXPECT_EQ(whole.at("active_parameters"), 37552282624);
  EXPECT_EQ(whole.at("active_parameters_without_embedding"), 37552282624 - 129280 * 7168);
  EXPECT_EQ(whole.at("mtp_parameters"), 11610067968);
  EXPECT_EQ(whole.at("kv_cache_bytes_per_token"), 61 * (512 + 64) * 4);
  EXPECT_THAT(info(layout).output,
              testing::AllOf(HasSubstr("671B parameters, 37.6B active (36.6B without the embedding), MTP 11.6B"),
                             HasSubstr("latent attention keeps one vector of 576 a layer"),
                             HasSubstr("routed experts 654B"), HasSubstr("3-60 x 256   435939180544")));
  const int64_t attention = 187107328, expert = 3 * 7168 * 2048, layer = attention + 2 * 7168 + 256 * 7168 + 5 * expert;
  EXPECT_EQ(whole.at("rank").at("layout"), "pp 16 (1f1b) x dp 128 x tp 1, experts edp 2 x ep 64");
  EXPECT_EQ(whole.at("rank").at("pp_rank"), 1);
  EXPECT_EQ(whole.at("rank").at("memory_bytes").at("parameters"), 4 * 4 * layer);
  // Every rank of one stage holds one expert of 256 in each of 59 layers with experts, the last of which predicts.
  const auto flat = info_of("deepseek_v3 --world-size 256 --pp 1 --tp 1 --ep 256 --gbs 256");
  EXPECT_EQ(flat.at("rank").at("memory_bytes").at("parameters"),
            4 * (671026404352 + 11610067968 - int64_t{59} * 255 * expert));
}

TEST(ModelInfo, ARepeatedMtpModuleIsOneThatIsAppliedSeveralTimes) {
  const std::string two = "deepseek_v3_tiny --world-size 1 --mtp-num-layers 2";
  EXPECT_THAT(info(two).output, HasSubstr("  MTP       2 modules with "));
  const std::string repeated = two + " --mtp-use-repeated-layer";
  EXPECT_THAT(info(repeated).output, HasSubstr("  MTP       1 module, applied 2 times, with "));
  EXPECT_EQ(2 * info_of(repeated).at("mtp_parameters").get<int64_t>(), info_of(two).at("mtp_parameters"));
  EXPECT_EQ(info_of(repeated).at("mtp_forward_flops_per_token"), info_of(two).at("mtp_forward_flops_per_token"));
  EXPECT_EQ(info_of(repeated).at("modules").back().at("uses"), 2);
}

TEST(ModelInfo, TakesTheSettingsOfTrain) {
  EXPECT_EQ(info_of("gpt_tiny --num-layers 8").at("modules")[2].at("copies"), 8);
  EXPECT_THAT(info("gpt_tiny").output,
              testing::AllOf(HasSubstr("pp 2 (1f1b) x dp 2 x tp 2"), HasSubstr("(train's own layout: ")));
  EXPECT_THAT(info("gpt_tiny --world-size 1").output, testing::Not(HasSubstr("train's own layout")));
  EXPECT_THAT(info("llama_8b --tp 8").output, HasSubstr(", fp32, 1 microbatch of 32 sequences, every rank: "));
  EXPECT_THAT(info("gpt2_124m --markdown").output,
              HasSubstr("| `head.weight` | [50257, 768] | 1 | 0 | 0 | the embedding |"));
  const Outcome typo = info("gpt_tny");
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_THAT(typo.output, HasSubstr("did you mean 'gpt_tiny'"));
}

}  // namespace
}  // namespace ranklab
