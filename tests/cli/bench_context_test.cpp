// ranklab bench cp: what a rank sends is what the papers' formulas say, for any size; the useful share of the ranks'
// time is near what others measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

std::map<std::string, nlohmann::json> context_rows(const std::string& arguments) {
  const Outcome run = run_command(RANKLAB_PROGRAM " bench cp --json " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  std::map<std::string, nlohmann::json> rows;
  const nlohmann::json json = nlohmann::json::parse(run.output);
  for (const auto& row : json.at("data").at("cp"))
    rows[row.at("exchange").get<std::string>() + " " + row.at("balance").get<std::string>()] = row;
  return rows;
}

TEST(BenchContext, WhatARankSendsIsWhatTheFormulasSay) {
  for (const char* size : {"", "--ranks 4 --heads 16 --kv-heads 4 --head-dim 64 --positions 256 --batch 3",
                           "--ranks 8 --heads 8 --kv-heads 2 --head-dim 32 --positions 64",
                           "--ranks 6 --heads 6 --kv-heads 6 --head-dim 16 --positions 48"}) {
    const auto rows = context_rows(size);
    EXPECT_GE(rows.size(), 5U) << size;
    for (const auto& [name, row] : rows) {
      EXPECT_DOUBLE_EQ(row.at("sent_forward"), row.at("sent_forward_formula")) << size << ": " << name;
      EXPECT_DOUBLE_EQ(row.at("sent_backward"), row.at("sent_backward_formula")) << size << ": " << name;
    }
  }
}

// 2 K b s (n-1)/n = 2 * 64 * 1024 * 3/4, and (2 H + 2 K) (b s/n) (n-1)/n, by hand.
TEST(BenchContext, FormulasByHand) {
  const auto rows = context_rows("--ranks 4 --heads 8 --kv-heads 4 --head-dim 16 --positions 256");
  EXPECT_EQ(rows.at("p2p zigzag").at("sent_forward"), 98304);
  EXPECT_EQ(rows.at("p2p zigzag").at("sent_backward"), 98304 + 131072) << "and gradients, which take one hop more";
  EXPECT_EQ(rows.at("all_gather zigzag").at("sent_backward"), 2 * 98304);
  EXPECT_EQ(rows.at("a2a zigzag").at("sent_forward"), 2 * (128 + 64) * 256 * 3 / 4);
}

// A ring sends less than Ulysses forward only with fewer ranks than H/K + 1.
TEST(BenchContext, ARingSendsLessThanHeadsOnFewRanks) {
  const auto few = context_rows("--ranks 4 --heads 32 --kv-heads 8 --head-dim 16 --positions 64");
  EXPECT_LT(few.at("p2p zigzag").at("sent_forward"), few.at("a2a zigzag").at("sent_forward"));
  const auto many = context_rows("--ranks 8 --heads 32 --kv-heads 8 --head-dim 16 --positions 64");
  EXPECT_GT(many.at("p2p zigzag").at("sent_forward"), many.at("a2a zigzag").at("sent_forward"));
}

TEST(BenchContext, UsefulTimeIsNearWhatWasMeasured) {
  const auto rows = context_rows("");
  for (const char* name : {"p2p contiguous", "p2p zigzag", "p2p stripe"}) {
    const auto& row = rows.at(name);
    EXPECT_NEAR(row.at("useful_forward_percent"), row.at("published_forward_percent").get<double>(), 5) << name;
    EXPECT_NEAR(row.at("useful_percent"), row.at("published_percent").get<double>(), 5) << name;
  }
  EXPECT_FALSE(context_rows("--positions 4096").at("p2p zigzag").contains("published_percent")) << "of other sizes";
}

TEST(BenchContext, SaysWhatItMeasures) {
  const Outcome run = run_command(RANKLAB_PROGRAM " bench cp --ranks 2 --positions 64");
  EXPECT_THAT(run.output, HasSubstr("2 ranks with 64 positions each"));
  EXPECT_THAT(run.output, testing::ContainsRegex("p2p +zigzag"));
}

}  // namespace
}  // namespace ranklab
