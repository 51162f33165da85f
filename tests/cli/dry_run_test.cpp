// ranklab train --dry-run: what it predicts is what the run then does, and it answers at once for any size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

std::string log_dir() { return temporary_path("ranklab_dry_run"); }

Outcome train(const std::string& arguments) {
  return run_command(std::string(RANKLAB_PROGRAM " train --log-dir ") + log_dir() + " " + arguments);
}

nlohmann::json dry_run(const std::string& arguments) {
  const Outcome run = train("--dry-run --json " + arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output);
}

// The line of a stream of JSON objects.
nlohmann::json line_of(const std::string& output, int wanted) {
  std::istringstream lines(output);
  std::string line;
  for (int i = 0; i <= wanted; ++i) std::getline(lines, line);
  return nlohmann::json::parse(line);
}

TEST(DryRun, EstimatesTheVirtualStepThatTheRunThenTakes) {
  for (const char* layout : {"--tp 1", "--tp 8", "--tp 2", "--pp 4", "--pipeline-schedule zb-h1"}) {
    const auto estimate = dry_run(layout)["data"]["estimate"];
    const Outcome run = train(std::string("--json --mock-data --train-iters 2 --eval-interval 0 --no-trace ") + layout +
                              " 2>/dev/null");
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const auto step = line_of(run.output, 1);
    const double tolerance = estimate["tolerance"];
    EXPECT_LE(tolerance, 0.25);
    EXPECT_NEAR(estimate["virtual_step_ms"].get<double>() / step["virtual_step_ms"].get<double>(), 1.0, tolerance)
        << layout;
    EXPECT_NEAR(estimate["mfu"].get<double>() / step["mfu"].get<double>(), 1.0, tolerance) << layout;
  }
}

TEST(DryRun, AnswersAtOnceForWorldsThisMachineCannotHold) {
  const auto begin = std::chrono::steady_clock::now();
  const auto run = dry_run("--preset llama_8b --world-size 64 --tp 8 --gbs 128 --mbs 1");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  const auto& memory = run["data"]["memory_bytes"];
  // 8.03e9 fp32 parameters over 8 ranks, 65 norm vectors of 4096 on each.
  const int64_t norms = 65 * 4096;
  const int64_t parameters = 4 * ((8030261248 - norms) / 8 + norms);
  EXPECT_EQ(memory["parameters"], parameters);
  EXPECT_EQ(memory["optimizer"], 2 * parameters);
  EXPECT_EQ(run["data"]["traffic"][1]["axis"], "dp");
  EXPECT_EQ(run["data"]["traffic"][1]["logical_bytes_per_rank"], parameters);
  EXPECT_TRUE(run["warnings"].empty());
}

TEST(DryRun, WarnsWhenARankDoesNotFitTheProfile) {
  const auto run = dry_run("--preset llama_8b --world-size 8 --tp 1 --gbs 8");
  ASSERT_EQ(run["warnings"].size(), 1u);
  EXPECT_THAT(run["warnings"][0].get<std::string>(), HasSubstr("raise --tp"));
  EXPECT_THAT(train("--dry-run --preset llama_8b --world-size 8 --tp 1 --gbs 8").output, HasSubstr("warning  a rank"));
}

TEST(DryRun, LeavesNothingBehind) {
  std::filesystem::remove_all(log_dir());
  EXPECT_EQ(train("--dry-run").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(log_dir()));
}

TEST(DryRun, SaysWhatIsAnEstimateAndHowItIsMade) {
  const std::string text = train("--dry-run").output;
  EXPECT_THAT(text, HasSubstr("estimate, within 10 %"));
  EXPECT_THAT(text, HasSubstr("how: each kernel max(FLOPs / peak, bytes / bandwidth) + launch"));
  EXPECT_THAT(text, HasSubstr("nothing was run"));
  EXPECT_THAT(train("--dry-run --world-size 1 --tp 1").output, HasSubstr("one rank sends nothing"));
}

}  // namespace
}  // namespace ranklab
