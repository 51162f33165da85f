// ranklab bench precision: every recipe trains on the same data and is compared with the first one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using Json = nlohmann::json;

std::string command(const std::string& arguments) {
  return std::string(RANKLAB_PROGRAM) +
         " bench precision --preset gpt_tiny --num-layers 2 --hidden-size 64 --seq-length 64 --gbs 8 --mock-data "
         "--steps 6 --eval-iters 1 " +
         arguments;
}

TEST(BenchPrecision, HoldsRecipesToTheFirst) {
  const Outcome outcome = run_command(command("--recipes bf16,mxfp8,bf16 --seeds 2 --json 2>/dev/null"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const Json result = Json::parse(outcome.output).at("data");
  EXPECT_EQ(result["steps"], 6);
  const Json& recipes = result["recipes"];
  ASSERT_EQ(recipes.size(), 3);
  EXPECT_EQ(recipes[1]["name"], "mxfp8");
  EXPECT_EQ(recipes[2]["loss"], recipes[0]["loss"]) << "training repeats";
  EXPECT_EQ(recipes[2]["worst_change"], 0.0);
  ASSERT_EQ(recipes[0]["loss"].size(), 2);
  EXPECT_NE(recipes[0]["loss"][0], recipes[0]["loss"][1]) << "seeds differ";
  double worst = 0;
  for (int seed = 0; seed < 2; ++seed) {
    const double change = recipes[1]["loss"][seed].get<double>() / recipes[0]["loss"][seed].get<double>() - 1;
    EXPECT_NE(change, 0);
    if (std::abs(change) >= std::abs(worst)) worst = change;
  }
  EXPECT_DOUBLE_EQ(recipes[1]["worst_change"].get<double>(), worst);
  EXPECT_LT(std::abs(worst), 0.01);
}

TEST(BenchPrecision, TheTableHasARowForEach) {
  const Outcome outcome = run_command(command("--recipes bf16,nvfp4 --seeds 1 2>/dev/null"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, testing::ContainsRegex("bf16 .*0.00%.*0.00%\nnvfp4 "));
}

}  // namespace
}  // namespace ranklab
