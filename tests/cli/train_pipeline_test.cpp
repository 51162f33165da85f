// ranklab train with a pipeline, as a user: any schedule trains as the same run without one does and its trace is
// sound. What is refused: bad_inputs/pipeline.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

std::string folder() { return temporary_path("ranklab_pipeline"); }

Outcome train_mocked(const std::string& arguments, const char* errors = "2>&1") {
  return run_command(std::string(RANKLAB_PROGRAM " train --mock-data --log-dir ") + folder() + " " + arguments + " " +
                     errors);
}

// The losses of --json's step lines.
std::vector<double> losses(const std::string& arguments) {
  const Outcome run = train_mocked(
      "--json --gemm mkl --train-iters 3 --eval-interval 0 --sample-tokens 0 --gbs 16 " + arguments, "2>/dev/null");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  std::vector<double> values;
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains("loss")) values.push_back(object["loss"]);
  }
  EXPECT_EQ(values.size(), 3u) << run.output;
  return values;
}

TEST(PipelineCommand, SchedulesTrainAsOneStageDoes) {
  const std::vector<double> want = losses("--world-size 2 --tp 2 --num-microbatches 8");
  for (const char* arguments :
       {"--pp 4 --tp 2 --pipeline-schedule 1f1b --num-microbatches 8", "--pp 2 --tp 2 --vpp 2 --world-size 4 --mbs 2",
        "--pp 2 --tp 2 --world-size 4 --pipeline-schedule zb-v --num-microbatches 8",
        "--pp 4 --tp 2 --pipeline-schedule zb-h1 --num-microbatches 8 --collectives gloo",
        "--pp 3 --tp 2 --world-size 6 --pipeline-layout 1,2,1 --num-microbatches 8"}) {
    const std::vector<double> got = losses(arguments);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.at(i), want[i], 1e-5 * want[i]) << arguments;
    EXPECT_EQ(run_command(std::string(RANKLAB_PROGRAM " trace validate ") + folder() + "/trace.json.gz").exit_code, 0)
        << arguments;
  }
}

TEST(PipelineCommand, TheBannerNamesMeshScheduleAndBubble) {
  const Outcome run = train_mocked("--pp 2 --tp 2 --num-microbatches 8 --train-iters 1 --eval-interval 0");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("pp 2 x dp 2 x tp 2, sequence parallel"));
  // (p-1)/(m+p-1)
  EXPECT_THAT(run.output, HasSubstr("1f1b, 2 stages of 2 layers; bubble 11.1 % of the total"));
  EXPECT_THAT(run.output, HasSubstr("sample:\nAnd the "));
}

TEST(PipelineCommand, DryRunTellsMemoryAndBubble) {
  const Outcome text = train_mocked("--dry-run --pp 4 --tp 2 --num-layers 8 --pipeline-layout 3,2,2,1");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("mesh     pp 4 x dp 1 x tp 2"));
  EXPECT_THAT(text.output, HasSubstr("4 stages of 3, 2, 2, 1 layers"));
  EXPECT_THAT(text.output, HasSubstr("of pipeline rank 0, the fullest"));
  const auto json =
      nlohmann::json::parse(train_mocked("--dry-run --json --pp 4 --tp 2 --num-microbatches 8").output)["data"];
  EXPECT_NEAR(json["pipeline"]["bubble_of_total"].get<double>(), 3.0 / 11, 1e-9);
  EXPECT_EQ(json["pipeline"]["peak_activations"], nlohmann::json({4, 3, 2, 1}));
  EXPECT_EQ(train_mocked("--dry-run --pp 2 --pipeline-schedule dualpipe --num-microbatches 8").exit_code, 0);
}

TEST(PipelineCommand, AScheduleFileRuns) {
  const std::string file = folder() + "/own.csv";
  std::filesystem::create_directories(folder());
  ASSERT_EQ(run_command(std::string(RANKLAB_PROGRAM " schedule export zb-h1 --pp 2 --num-microbatches 4 --out ") +
                        file + " 2>/dev/null")
                .exit_code,
            0);
  EXPECT_EQ(losses("--pp 2 --tp 2 --world-size 4 --num-microbatches 4 --pipeline-schedule " + file),
            losses("--pp 2 --tp 2 --world-size 4 --num-microbatches 4 --pipeline-schedule zb-h1"));
  const Outcome other = train_mocked("--pp 2 --tp 2 --num-microbatches 8 --pipeline-schedule " + file);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.output, HasSubstr("is for a different number of microbatches; got --num-microbatches 8; want "
                                      "--num-microbatches 4"));
}

}  // namespace
}  // namespace ranklab
