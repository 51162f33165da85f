// ranklab bench dispatchers: what it counts, on a routing whose bytes can be computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

Outcome bench(const std::string& arguments) {
  return run_command(RANKLAB_PROGRAM " bench dispatchers " + arguments + " 2>&1");
}

// Two nodes of two ranks, an expert on each, and all tokens go to all of them: ten tokens of 16 numbers a rank.
TEST(BenchDispatchers, CountsWhatLeavesARankAndItsNode) {
  const Outcome run =
      bench("--ranks 4 --gpus-per-node 2 --experts 4 --topk 4 --tokens 10 --hidden 16 --iterations 1 --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  std::map<std::string, nlohmann::json> rows;
  const nlohmann::json json = nlohmann::json::parse(run.output);
  for (const auto& row : json.at("data").at("dispatchers")) rows[row.at("dispatcher")] = row;
  ASSERT_EQ(rows.size(), 4U);
  const double plain = 10 * 16 * 4, packed = 10 * (16 + 2 * 4) * 4;  // bytes, the latter with 4 weights and experts
  const double both_ways = 2 * plain + 2 * packed;                   // dispatch, combine and their gradients
  const double counts = 3 * 4 * 8;                                   // a ring: four experts' counts to each of three

  // Each of a token's four copies is sent separately: one within the node, two to the other node. In the ring of counts
  // two of the four ranks have their successor on the other node.
  const auto& plain_row = rows["alltoall"];
  EXPECT_EQ(plain_row.at("calls"), 5);
  EXPECT_DOUBLE_EQ(plain_row.at("bytes_in_node"), 4 * plain + counts / 2);
  EXPECT_DOUBLE_EQ(plain_row.at("bytes_to_other_nodes"), 2 * 4 * plain + counts / 2);

  // Once to the other node, whose rank hands it and its own node's tokens on to the neighbour.
  const auto& dedup = rows["dedup"];
  const double numbers = 3 * (4 + 2) * 8;
  EXPECT_EQ(dedup.at("calls"), 9);
  EXPECT_DOUBLE_EQ(dedup.at("bytes_to_other_nodes"), both_ways + numbers / 2);
  EXPECT_DOUBLE_EQ(dedup.at("bytes_in_node"), 2 * both_ways + numbers / 2);

  // To each of the three others once, 16 bytes on top of every row, and nothing else.
  const auto& rdep = rows["rdep"];
  const double stamps = 4 * 10 * 16;
  EXPECT_EQ(rdep.at("calls"), 4 * 3);
  EXPECT_DOUBLE_EQ(rdep.at("bytes_in_node"), both_ways + stamps);
  EXPECT_DOUBLE_EQ(rdep.at("bytes_to_other_nodes"), 2 * (both_ways + stamps));

  // A ring of everybody's tokens, and of their sums: both_ways for each of the three others.
  const auto& gather = rows["allgather"];
  EXPECT_EQ(gather.at("calls"), 5);
  EXPECT_DOUBLE_EQ(gather.at("bytes_in_node").get<double>() + gather.at("bytes_to_other_nodes").get<double>(),
                   3 * both_ways + 3 * 8);
}

TEST(BenchDispatchers, SaysWhatItMeasuresAndRefusesWhatDoesNotFit) {
  const Outcome run = bench("--ranks 2 --gpus-per-node 1 --experts 4 --topk 2 --tokens 3 --hidden 4 --iterations 1");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("# 2 ranks in nodes of 1, 3 tokens of 4 fp32 numbers each, 4 experts, top 2"));
  EXPECT_THAT(run.output, HasSubstr("virt. forward"));
  const Outcome bad = bench("--ranks 3 --experts 4");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.output, HasSubstr("experts divisible by ranks"));
}

}  // namespace
}  // namespace ranklab
