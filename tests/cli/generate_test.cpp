// ranklab generate as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Outcome generate(const std::string& arguments) {
  return run_command(RANKLAB_PROGRAM " generate --gemm mkl --mock-data " + arguments);
}

nlohmann::json generated(const std::string& arguments) {
  return answer_of(generate(arguments + " --json 2>/dev/null"));
}

TEST(Generate, TensorParallelRanksWriteWhatOneRankWrites) {
  for (const std::string preset : {"gpt_tiny", "deepseek_v3_tiny"}) {
    const std::string common = "--preset " + preset + " --params-dtype fp64 --tokens 150 --seed 3 ";
    const auto one = generated(common), four = generated(common + "--tp 4");
    EXPECT_EQ(one.at("tokens"), four.at("tokens")) << preset;
    EXPECT_EQ(one.at("generated_tokens"), 150);
    EXPECT_EQ(one.at("prompt_tokens"), 8);
    EXPECT_EQ(one.at("tokens").size(), 158u);
    EXPECT_THAT(one.at("text").get<std::string>(), StartsWith("And the "));
    EXPECT_THAT(four.at("layout").get<std::string>(), StartsWith("dp 1 x tp 4"));
    EXPECT_NE(generated("--preset " + preset + " --params-dtype fp64 --tokens 150 --seed 4").at("tokens"),
              one.at("tokens"));
  }
}

// Nothing is trained without --train-iters, also with a checkpoint.
TEST(Generate, OptionsOfTrainingAreReportedAsIdle) {
  const std::string idle = "--lr 5 has no effect: it applies to runs that train";
  const Outcome told = generate("--tokens 2 --lr 5 2>&1"), strict = generate("--strict --tokens 2 --lr 5 2>&1");
  EXPECT_EQ(told.exit_code, 0) << told.output;
  EXPECT_THAT(told.output, HasSubstr("warning: " + idle));
  EXPECT_EQ(strict.exit_code, 2) << strict.output;
  EXPECT_THAT(strict.output, HasSubstr(idle));
}

TEST(Generate, AnotherProgramsNameOfAnOptionLeadsToItsOwn) {
  EXPECT_THAT(generate("--max-new-tokens 40 2>&1").output, HasSubstr("did you mean '--tokens'?"));
  EXPECT_THAT(generate("--max_new_tokens=40 2>&1").output, HasSubstr("did you mean '--tokens'?"));
}

// Ranks of other replicas work only for their experts; a pipeline recomputes the window for each token.
TEST(Generate, AnyLayoutWritesWhatOneRankWrites) {
  const std::string dense = "--params-dtype fp64 --tokens 20 --seed 3 ";
  const auto want = generated(dense).at("tokens");
  for (const std::string layout :
       {"--pp 2", "--cp 2", "--dp 3", "--dp 3 --world-size 3", "--tp 2 --cp 2 --pp 2", "--dp 2 --zero-stage 3"})
    EXPECT_EQ(generated(dense + layout).at("tokens"), want) << layout;
  const std::string experts = "--preset deepseek_v3_tiny " + dense;
  const auto experts_want = generated(experts).at("tokens");
  for (const std::string layout : {"--ep 4", "--ep 2 --pp 3", "--ep 4 --etp 2 --tp 2 --cp 2"})
    EXPECT_EQ(generated(experts + layout).at("tokens"), experts_want) << layout;
}

// In every layout ranks stop together.
TEST(Generate, ATextEndsWhereTheModelSaysSo) {
  const std::string common = "--params-dtype fp64 --tokens 20 --seed 3 --prompt a --top-p 0.9 ";
  const auto all = generated(common);
  ASSERT_EQ(all.at("generated_tokens"), 20);
  const int64_t end = all.at("tokens").at(5);
  size_t length = 1;
  while (all.at("tokens").at(length) != end) ++length;
  for (const std::string layout : {"", "--tp 2", "--pp 2", "--dp 2 --zero-stage 3"}) {
    const auto ended = generated(common + layout + " --hf-eos-tokens 300," + std::to_string(end));
    EXPECT_EQ(ended.at("generated_tokens"), length) << layout;
    EXPECT_EQ(ended.at("tokens").back(), end) << layout;
  }
  EXPECT_EQ(generated(common + "--ignore-eos --hf-eos-tokens " + std::to_string(end)).at("tokens"), all.at("tokens"));
}

TEST(Generate, ThePromptsOfAFileAreWrittenAsEachAlone) {
  const std::string file = temporary_path("ranklab_prompts"), common = "--params-dtype fp64 --tokens 12 --seed 3 ";
  std::ofstream(file) << "\xef\xbb\xbf"
                         "And the \r\nIn the beginning\nAnd the";
  std::vector<nlohmann::json> alone;
  for (const char* prompt : {"'And the '", "'In the beginning'", "'And the'"})
    alone.push_back(generated(common + "--prompt " + prompt));
  for (const std::string layout : {"", "--tp 2", "--pp 2"}) {
    const auto all = generated(common + layout + " --prompt-file " + file);
    ASSERT_EQ(all.at("texts").size(), 3u);
    for (size_t i = 0; i < 3; ++i)
      for (const char* key : {"text", "tokens", "prompt_tokens", "generated_tokens"})
        EXPECT_EQ(all.at("texts")[i].at(key), alone[i].at(key)) << layout << i << key;
  }
  EXPECT_THAT(generate(common + "--prompt-file " + file + " 2>/dev/null").output,
              AllOf(StartsWith(alone[0].at("text").get<std::string>()), HasSubstr("\n36 tokens in ")));
  std::filesystem::remove(file);
}

TEST(Generate, AfterTrainingAPipelineGoesOnFromItsOwnWeights) {
  const std::string trained = "--params-dtype fp64 --train-iters 2 --gbs 4 --tokens 10 --top-k 1 ";
  EXPECT_EQ(generated(trained + "--pp 2 --cp 2").at("tokens"), generated(trained).at("tokens"));
}

// Five layers, in fp32: of latent attention 32 + 8 numbers on every rank, of 8 heads keys of 16 and values of 8.
TEST(Generate, SaysWhatTheCacheTakes) {
  const auto latent = generated("--preset deepseek_v3_tiny --tokens 4 --tp 2");
  EXPECT_EQ(latent.at("cache_bytes_per_token"), 5 * 40 * 4);
  EXPECT_EQ(latent.at("uncompressed_cache_bytes_per_token"), 5 * (8 / 2) * 24 * 4);
  EXPECT_EQ(generated("--tokens 4 --tp 2").at("cache_bytes_per_token"), 4 * 2 * (8 / 2) * 16 * 4);
}

TEST(Generate, TrainsFirstWhenAsked) {
  const Outcome trained = generate("--train-iters 3 --gbs 4 --tokens 20 --prompt 'In the ' 2>/dev/null");
  EXPECT_EQ(trained.exit_code, 0);
  EXPECT_THAT(trained.output, StartsWith("In the "));
  EXPECT_THAT(trained.output, HasSubstr("weights of seed 1234 after 3 steps"));
  EXPECT_THAT(generate("--tokens 20 2>/dev/null").output,
              HasSubstr("untrained weights of seed 1234 (--train-iters N trains them first)"));
  EXPECT_NE(generated("--train-iters 3 --gbs 4 --tokens 20 --top-k 1").at("tokens"),
            generated("--tokens 20 --top-k 1").at("tokens"));
}

TEST(Generate, GreedyIsTopOneWhateverTheSeedOfTheDraw) {
  EXPECT_EQ(generated("--tokens 30 --top-k 1").at("tokens"), generated("--tokens 30 --temperature 0").at("tokens"));
}

TEST(Generate, APromptOfAnyLanguageStaysAsItIs) {
  const std::string german = "--tokens 3 --prompt 'Der sch\u00f6ne'";
  EXPECT_THAT(generated(german).at("text").get<std::string>(), StartsWith("Der sch\u00f6ne"));
  EXPECT_THAT(generate(german + " 2>/dev/null").output, StartsWith("Der sch\u00f6ne"));
}

TEST(Generate, WithoutATokenizerItPrintsTokens) {
  const auto run = generated("--vocab-size 300 --num-layers 1 --tokens 5 --prompt A");
  EXPECT_TRUE(run.at("text").is_null());
  EXPECT_EQ(run.at("tokens")[0], 65);
  EXPECT_THAT(generate("--vocab-size 300 --num-layers 1 --tokens 5 --prompt A 2>/dev/null").output, StartsWith("65 "));
}

}  // namespace
}  // namespace ranklab
