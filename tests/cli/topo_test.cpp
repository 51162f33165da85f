// ranklab topo as a user runs it: coordinates, groups, the groups that leave their node, and what a step sends there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_program.h"
#include "tests/fair_clock.h"

namespace ranklab {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome topo(const std::string& arguments) { return run_command(RANKLAB_PROGRAM " topo " + arguments + " 2>&1"); }

nlohmann::json topo_json(const std::string& arguments) {
  const Outcome run = topo(arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output).at("data");
}

TEST(Topo, JsonNamesCoordinatesGroupsAndNodes) {
  const auto json = topo_json("--tp 2 --pp 2 --dp 2 --ep 4 --order tp-cp-ep-dp-pp --gpus-per-node 4");
  EXPECT_EQ(json["world_size"], 8);
  EXPECT_EQ(json["nodes"], 2);
  const auto& rank6 = json["ranks"][6];
  EXPECT_EQ(rank6["node"], 1);
  EXPECT_EQ(rank6["tp"], 0);
  EXPECT_EQ(rank6["dp"], 1);
  EXPECT_EQ(rank6["pp"], 1);
  EXPECT_EQ(rank6["ep"], 2);
  EXPECT_EQ(json["groups"]["dp"][0]["ranks"], nlohmann::json({0, 2}));
  EXPECT_EQ(json["groups"]["dp"][0]["nodes"], nlohmann::json({0}));
  EXPECT_EQ(json["groups"]["pp"][1]["ranks"], nlohmann::json({1, 5}));
  EXPECT_EQ(json["groups"]["pp"][1]["nodes"], nlohmann::json({0, 1}));
  EXPECT_EQ(json["groups"]["ep"][1]["ranks"], nlohmann::json({4, 5, 6, 7}));
}

// Llama 8B, tp 2 x dp 4 on nodes of 4 with whole-node rings: every byte of the gradients and of a row of tp, by hand.
TEST(Topo, BytesAcrossNodesOfAModel) {
  const auto traffic = topo_json("--tp 2 --dp 4 --gpus-per-node 4 --seq-length 4096")["traffic"]["axes"];
  ASSERT_EQ(traffic.size(), 2u);
  const auto &tp = traffic[0], &dp = traffic[1];
  EXPECT_EQ(tp["axis"], "tp");
  EXPECT_EQ(tp["bytes_across_nodes"], 0);
  // 8.03e9 parameters: matrices cut in two, 65 norm vectors of 4096 whole; fp32.
  const int64_t norms = 65 * 4096;
  const int64_t gradient_bytes = 4 * ((8030261248 - norms) / 2 + norms);
  EXPECT_EQ(dp["axis"], "dp");
  EXPECT_EQ(dp["logical_bytes_per_rank"], gradient_bytes);
  EXPECT_EQ(dp["sent_bytes_per_rank"], gradient_bytes / 4 * 6);
  EXPECT_EQ(dp["sent_bytes"], gradient_bytes / 4 * 6 * 8);
  EXPECT_EQ(dp["bytes_across_nodes"], gradient_bytes / 4 * 6 * 4) << "two rings, two edges each";
}

TEST(Topo, TablesAndDrawing) {
  const Outcome run = topo("--tp 2 --dp 4 --gpus-per-node 2");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("tp   4 groups of 2, none across nodes"));
  EXPECT_THAT(run.output, HasSubstr("dp   2 groups of 4, 2 across nodes"));
  EXPECT_THAT(run.output, HasSubstr("node 3 │ 6 7"));
  EXPECT_THAT(run.output, HasSubstr("8 ranks on 4 nodes of 2: pp 1 x dp 4 x cp 1 x tp 2"));
  EXPECT_THAT(topo("--tp 2 --ep 2").output, HasSubstr("2 experts top-2 in 32 of 32 layers"));
  EXPECT_THAT(topo("--cp 2").output, testing::ContainsRegex("cp +2 "));
}

TEST(Topo, LargeWorldsAreShortenedAndFast) {
  const FairClock clock;
  const Outcome run = topo("--world-size 1024 --tp 8 --pp 4 --gbs 1024");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_LT(std::count(run.output.begin(), run.output.end(), '\n'), 90);
  EXPECT_THAT(run.output, HasSubstr("and 124 more nodes (--all shows them)"));
  const Outcome all = topo("--world-size 1024 --tp 8 --pp 4 --all");
  EXPECT_GT(std::count(all.output.begin(), all.output.end(), '\n'), 1024);
  const Outcome largest = topo("--world-size 16384 --tp 8 --pp 16");
  EXPECT_EQ(largest.exit_code, 0) << largest.output;
  EXPECT_LT(clock.seconds(), 30);
}

TEST(Topo, ANodeMayBeLargerThanAnyWorld) {
  EXPECT_THAT(topo("--tp 2 --preset none --gpus-per-node 2147483647").output, HasSubstr("2 ranks on 1 node"));
}

TEST(Topo, OneRankSendsNothing) {
  EXPECT_THAT(topo("--preset gpt_tiny").output, HasSubstr("nothing is sent"));
  EXPECT_THAT(topo("--tp 3 --preset none").output, HasSubstr("3 ranks on 1 node"));
}

TEST(Topo, ColourFollowsTheWordsOfTheUser) {
  const std::string command = RANKLAB_PROGRAM " topo --tp 2 --preset none";
  const auto colored = [](const std::string& line) {
    return run_command(line).output.find('\033') != std::string::npos;
  };
  EXPECT_FALSE(colored(command)) << "a pipe is no terminal";
  EXPECT_TRUE(colored(command + " --color always"));
  EXPECT_TRUE(colored("CLICOLOR_FORCE=1 " + command));
  EXPECT_FALSE(colored("NO_COLOR=1 CLICOLOR_FORCE=1 " + command));
  EXPECT_FALSE(colored("CLICOLOR_FORCE=1 " + command + " --color=never"));
  EXPECT_TRUE(colored("NO_COLOR=1 " + command + " --color=always"));
  EXPECT_EQ(run_command(command + " --color=allways 2>/dev/null").exit_code, 2);
}

struct BadLayout {
  const char* arguments;
  const char* says;
};

TEST(Topo, BadLayoutsAreOneErrorWithTheNearestLegalValue) {
  const BadLayout bad[] = {
      {"--world-size 8 --tp 2 --dp 3", "want dp 4, or a world of 6 ranks"},
      {"--world-size 8 --tp 3", "want a world of 6 or 9 ranks"},
      {"--tp 8192 --pp 4", "want 1 to 16384 ranks"},
      {"--tp 0", "got 0"},
      {"--world-size -1", "want 1 to 16384 ranks"},
      {"--gpus-per-node 0", "--gpus-per-node must be positive"},
      {"--order tp-dp", "must name tp, cp, ep, dp and pp once each"},
      {"--tp 2 --ep 3 --dp 2", "among 1, 2, 4"},
      {"--dp 4 --ep 2 --etp 4", "among 1, 2, 4"},
      {"--tp x", "--tp"},
      {"--tp 3", "--num-attention-heads"},
      {"--pp 64", "want pp of at most 32"},
      {"--preset llama_8c", "llama_8b"},
      {"--dp 4 --gbs 6", "want 4 or 8"},
      {"--cp 3", "got --seq-length 8192, --cp 3, --cp-balance zigzag; want a multiple of 6, for example 8190 or 8196"},
      {"--dp 4 --ep 4 --num-experts 6", "want 4 or 8"},
      {"--params-dtype fp12", "fp12"},
      {"--colour always", "--color"},
      {"--tpp 2", "did you mean"},
  };
  for (const auto& [arguments, says] : bad) {
    const Outcome run = topo(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.output;
    EXPECT_THAT(run.output, HasSubstr(says)) << arguments;
    EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << "one line: " << run.output;
  }
}

// Call by call, too: in buckets of the same size.
TEST(Topo, TrafficIsThatOfAPlan) {
  const auto plan = nlohmann::json::parse(
      run_command(RANKLAB_PROGRAM
                  " train --dry-run --preset gpt2_124m --tp 2 --dp 4 --mbs 1 --gbs 4 --mock-data --json")
          .output);
  const auto axes = topo_json("--preset gpt2_124m --tp 2 --dp 4 --gbs 4").at("traffic").at("axes");
  const auto& planned = plan.at("data").at("traffic");
  ASSERT_EQ(axes.size(), 2U);
  ASSERT_EQ(planned.size(), 2U);
  for (size_t i = 0; i < axes.size(); ++i)
    for (const char* key : {"axis", "calls_per_rank", "logical_bytes_per_rank", "sent_bytes_per_rank"})
      EXPECT_EQ(axes[i].at(key), planned[i].at(key)) << key;
}

// The advice names options of this command, or none.
TEST(Topo, AdviceIsOfItsOwnOptions) {
  const BadLayout bad[] = {
      {"--tp 2 --ep 2 --no-sp", "do: leave out --no-sequence-parallel\n"},
      {"--dp 2 --ep 2 --moe-router-topk 999", "do: lower it, or raise what bounds it\n"},
      {"--ddp-bucket-bytes 9000000000000000000", "do: pass such a value, or leave --ddp-bucket-bytes out"},
      {"--tp 3", "do: change the layout or the model, or --preset none for the mesh alone\n"},
      {"--cp 4 --seq-length 7", "do: pass such a --seq-length, or another --cp\n"},
      {"--cp 4 --seq-length 12", "do: change the layout or the model, or --preset none for the mesh alone\n"},
  };
  for (const auto& [arguments, says] : bad) EXPECT_THAT(topo(arguments).output, HasSubstr(says)) << arguments;
}

TEST(Topo, ErrorsAreJsonWhereJsonWasAskedFor) {
  for (const char* arguments : {"--tp 0 --json", "--json --tp x", "--json --order tp", "--json --no-such"}) {
    const Outcome run = run_command(std::string(RANKLAB_PROGRAM " topo ") + arguments + " 2>/dev/null");
    EXPECT_EQ(run.exit_code, 2);
    const auto json = nlohmann::json::parse(run.output);
    EXPECT_EQ(json["schema"], 1);
    EXPECT_EQ(json["ok"], false);
    EXPECT_EQ(json["error"]["code"], 2);
    EXPECT_FALSE(json["error"]["message"].get<std::string>().empty());
    EXPECT_FALSE(json["error"]["hint"].get<std::string>().empty()) << arguments;
  }
}

}  // namespace
}  // namespace ranklab
