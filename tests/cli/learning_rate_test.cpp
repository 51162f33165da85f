// A run logs the learning rates of the schedule, also when it resumes midway, and the sentinel agrees.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

// 10 steps: 2 of warm-up from 1e-3 to 4e-3, 4 stable ones, then 4 down to 4e-4 in a line.
const std::string kRun =
    "train --mock-data --num-layers 2 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 --seq-length 32 "
    "--gbs 8 --sample-tokens 0 --no-trace --eval-interval 0 --lr 4e-3 --min-lr 4e-4 --train-iters 10 "
    "--lr-decay-style WSD --lr-wsd-decay-iters 4 --lr-wsd-decay-style linear --lr-warmup-fraction 0.2 "
    "--lr-warmup-init 1e-3 --sentinel-mode standard ";
const std::vector<double> kRates = {1e-3, 2.5e-3, 4e-3, 4e-3, 4e-3, 4e-3, 4e-3, 3.1e-3, 2.2e-3, 1.3e-3};

std::vector<nlohmann::json> lines_of(const std::string& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

void expect_rates(const std::string& folder, size_t first) {
  size_t step = first;
  for (const auto& line : lines_of(folder + "/metrics.jsonl")) {
    if (!line.contains("lr")) continue;
    ASSERT_EQ(line.at("step"), step);
    EXPECT_NEAR(line.at("lr").get<double>(), kRates[step], 1e-15) << "step " << step;
    ++step;
  }
  EXPECT_EQ(step, kRates.size());
  for (const auto& line : lines_of(folder + "/sentinels.jsonl")) {
    EXPECT_EQ(line.at("values").at("Optimizer/lr_off_schedule"), 0) << line.at("step");
    EXPECT_NEAR(line.at("values").at("LR").get<double>(), kRates[line.at("step").get<size_t>()], 1e-15);
  }
}

TEST(LearningRate, FollowsItsScheduleAlsoFromTheMiddleOn) {
  const std::string folder = temporary_path("learning_rate");
  const Outcome whole = ranklab_and_errors(kRun + "--save " + folder + "/ck --save-interval 7 --log-dir " + folder);
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  expect_rates(folder, 0);
  const Outcome rest =
      ranklab_and_errors(kRun + "--load " + folder + "/ck/step_00000007 --log-dir " + folder + "/rest");
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  expect_rates(folder + "/rest", 7);
}

// fp16 steps whose update was skipped do not advance the schedule, also if the run resumes without a loss scale.
TEST(LearningRate, SkippedStepsStayUncountedInAnotherPrecision) {
  for (const int saved_at : {2, 7}) {  // all skipped, and some
    const std::string folder = temporary_path("learning_rate_skipped") + std::to_string(saved_at);
    const std::string at = std::to_string(saved_at), ck = folder + "/ck";
    const Outcome fp16 = ranklab_and_errors(kRun + "--fp16 --initial-loss-scale 4194304 --save " + ck +
                                            " --save-interval " + at + " --log-dir " + folder);
    ASSERT_EQ(fp16.exit_code, 0) << fp16.output;
    const auto before = lines_of(folder + "/metrics.jsonl");
    const auto skipped = before.at(static_cast<size_t>(saved_at) - 1).at("skipped_steps").get<size_t>();
    EXPECT_GT(skipped, 1U);
    EXPECT_EQ(skipped == static_cast<size_t>(saved_at), saved_at == 2);
    const Outcome rest =
        ranklab_and_errors(kRun + "--bf16 --load " + ck + "/step_0000000" + at + " --log-dir " + folder + "/rest");
    ASSERT_EQ(rest.exit_code, 0) << rest.output;
    auto step = static_cast<size_t>(saved_at);
    for (const auto& line : lines_of(folder + "/rest/metrics.jsonl")) {
      if (!line.contains("lr")) continue;
      EXPECT_NEAR(line.at("lr").get<double>(), kRates.at(step - skipped), 1e-15) << "step " << step;
      ++step;
    }
    EXPECT_EQ(step, kRates.size());
  }
}

}  // namespace
}  // namespace ranklab
