// ranklab zero map, and the same at the start of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ZeroMap, CoversEveryElementOnce) {
  const Outcome run = ranklab("zero map --dp 8 --zero-stage 1 --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto data = nlohmann::json::parse(run.output)["data"];
  EXPECT_EQ(data["zero_stage"], 1);
  const auto& stage = data["pipeline_ranks"][0];
  int64_t parameters = 0;
  for (const auto& bucket : stage["buckets"]) {
    int64_t in_bucket = 0;
    for (const auto& row : bucket["parameters"]) {
      int64_t next = 0;
      for (const auto& owner : row["owners"]) {
        EXPECT_EQ(owner["begin"], next) << row;
        next = owner["end"];
      }
      EXPECT_EQ(next, row["elements"]) << row;
      in_bucket += next;
    }
    EXPECT_EQ(bucket["elements"], in_bucket + bucket["padding"].get<int64_t>());
    parameters += in_bucket;
  }
  EXPECT_EQ(parameters, 869504);  // gpt_tiny
  int64_t updated = 0;
  for (const auto& rank : stage["ranks"]) {
    updated += rank["elements"].get<int64_t>();
    EXPECT_EQ(rank["optimizer_bytes"], 8 * rank["elements"].get<int64_t>());
  }
  EXPECT_EQ(updated, parameters);
}

TEST(ZeroMap, SaysItInWords) {
  const Outcome run = ranklab("zero map --dp 8 --zero-stage 2");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("ZeRO stage 2, optimizer states and gradients are sharded; dp 8"));
  EXPECT_THAT(run.output, HasSubstr("elements over dp 8"));
  EXPECT_THAT(run.output, HasSubstr("embedding.weight"));
  const std::string plain = ranklab("zero map --dp 8").output;
  EXPECT_THAT(plain, AllOf(HasSubstr("every rank updates all it holds"), Not(HasSubstr("train's own layout"))));
  EXPECT_THAT(ranklab("zero map").output, HasSubstr("dp 2; of pp 2 x dp 2 x tp 2 (train's own layout: "));
}

TEST(ZeroMap, ContextRanksOwnPartsOfTheirOwn) {
  const Outcome run = ranklab("zero map --dp 2 --cp 2 --zero-stage 1 --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  std::vector<int> owners;
  const auto data = nlohmann::json::parse(run.output)["data"];
  for (const auto& rank : data["pipeline_ranks"][0]["ranks"]) owners.push_back(rank["group_rank"]);
  EXPECT_THAT(owners, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ranklab("zero map --dp 2 --cp 2 --zero-stage 1").output, HasSubstr("dp x cp  elements updated"));
}

TEST(ZeroDebug, PrintsEveryPieceAtTheStart) {
  const std::string command =
      "train --dp 8 --zero-stage 1 --mock-data --train-iters 1 --eval-interval 0 --no-trace --sample-tokens 0 "
      "--log-dir " +
      temporary_path("ranklab_zero");
  const Outcome run = ranklab(command + " --zero-debug");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("dp 8, ZeRO stage 1"));
  std::map<std::string, int64_t> elements;
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("[ZeRO Debug][rank=")) continue;
    EXPECT_THAT(line, HasSubstr(" group_size=8 group_rank="));
    const size_t name = line.find("] ", line.find("param[")) + 2, range = line.find("shard=[") + 7;
    elements[line.substr(name, line.find(' ', name) - name)] +=
        std::stoll(line.substr(line.find(':', range) + 1)) - std::stoll(line.substr(range));
  }
  EXPECT_EQ(elements.at("head.weight"), 256 * 128);
  int64_t together = 0;
  for (const auto& [name, count] : elements) together += count;
  EXPECT_EQ(together, 869504);
  EXPECT_THAT(ranklab(command).output, testing::Not(HasSubstr("[ZeRO Debug]")));
}

}  // namespace
}  // namespace ranklab
