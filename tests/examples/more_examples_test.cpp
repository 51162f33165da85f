// train_4d gives one rank's losses on every mesh and the engine's refusal elsewhere; bring_your_own learns, and four
// ranks of it equal one; loops of one's own are the engine's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

// "loss 5.5 grad norm 7.4" of every step, as printed.
std::vector<std::string> steps_of(const std::string& command, const char* digits) {
  const Outcome run = run_command(command);
  EXPECT_EQ(run.exit_code, 0) << command << "\n" << run.output;
  std::vector<std::string> steps;
  const std::regex step("step +[0-9]+  loss [0-9]+\\.[0-9]" + std::string(digits));
  for (auto it = std::sregex_iterator(run.output.begin(), run.output.end(), step); it != std::sregex_iterator(); ++it) {
    steps.push_back(it->str());
  }
  return steps;
}

TEST(Train4d, EveryMeshGivesTheLossesOfOneRank) {
  const auto one = steps_of(TRAIN_MVP " 4", "{3}");
  ASSERT_EQ(one.size(), 4u);
  for (const char* mesh : {"--tp 2 --dp 2", "--dp 4", "--tp 4", "--tp 2 --dp 4", "--pp 4", "--tp 2 --pp 2 --dp 2",
                           "--cp 2", "--tp 2 --pp 2 --cp 2"}) {
    EXPECT_EQ(steps_of(std::string(TRAIN_4D " --steps 4 ") + mesh, "{3}"), one) << mesh;
  }
}

TEST(Train4d, ExpertsGiveTheSameLossesOnEveryMesh) {
  const auto one = steps_of(TRAIN_4D " --steps 4 --ep 1", "{3}");
  ASSERT_EQ(one.size(), 4u);
  for (const char* mesh : {"--dp 4 --ep 4", "--dp 2 --tp 2 --ep 4", "--pp 2 --tp 2 --dp 2 --ep 4",
                           "--dp 2 --tp 2 --ep 2 --etp 2", "--cp 4 --ep 4"}) {
    EXPECT_EQ(steps_of(std::string(TRAIN_4D " --steps 4 ") + mesh, "{3}"), one) << mesh;
  }
}

TEST(Train4d, TheEngineRefusesWhatItDoesNotRun) {
  EXPECT_THAT(run_command(TRAIN_4D " --cp 3 2>&1").output,
              HasSubstr("cannot be split evenly over the context-parallel ranks"));
  EXPECT_THAT(run_command(TRAIN_4D " --tp 3 2>&1").output, HasSubstr("--num-attention-heads"));
  EXPECT_EQ(run_command(TRAIN_4D " --zp 3 2>&1").exit_code, 2);
}

TEST(BringYourOwn, EveryLayoutEqualsOneRank) {
  const auto of = [](const std::string& layout) {
    return steps_of(BRING_YOUR_OWN " --steps 12 " + layout, "{4}  grad norm [0-9.]+");
  };
  const auto one = of("--dp 1");
  ASSERT_EQ(one.size(), 12u);
  for (const char* layout : {"--dp 4", "--dp 1 --tp 2 --pp 2 --recompute 1", "--dp 2 --tp 2 --zero-stage 3"})
    EXPECT_EQ(of(layout), one) << layout;
}

TEST(BringYourOwn, ItsModelLearns) {
  const Outcome run = run_command(BRING_YOUR_OWN " --steps 60 --dp 2");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("counting | 33312 parameters")) << "its own, not gpt_tiny's";
  double first = 0, last = 0;
  const size_t at = run.output.find("60 steps: loss ");
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(std::sscanf(run.output.c_str() + at, "60 steps: loss %lf -> %lf", &first, &last), 2);
  EXPECT_LT(last, 0.1 * first) << "counting is easy";
}

// The same runs as train_mvp's, through other interfaces.
TEST(OwnLoops, GiveTheLossesOfTheEngine) {
  const auto one = steps_of(TRAIN_MVP " 4", "{3}");
  ASSERT_EQ(one.size(), 4u);
  for (const char* ranks : {"1", "4"}) EXPECT_EQ(steps_of(std::string(TRAIN_LOOP " 4 ") + ranks, "{3}"), one) << ranks;
  for (const char* mesh : {"--dp 1", "--dp 4 --zero-stage 2", "--tp 2 --pp 2 --dp 2 --zero-stage 3"})
    EXPECT_EQ(steps_of(std::string(TRAIN_BY_HAND " --steps 4 ") + mesh, "{3}"), one) << mesh;
}

TEST(OwnLoops, SaveWhenTheirBodyAsks) {
  const std::string folder = temporary_path("ranklab_train_loop");
  ASSERT_EQ(steps_of(TRAIN_LOOP " 5 2 '" + folder + "'", "").size(), 5u);
  for (const char* step : {"step_00000002", "step_00000004", "step_00000005"})
    EXPECT_TRUE(std::filesystem::is_directory(folder + "/" + step)) << step;
  EXPECT_FALSE(std::filesystem::is_directory(folder + "/step_00000003"));
}

TEST(OwnLoops, LoadersTrainAndValidate) {
  const auto one = steps_of(TRAIN_LOADERS " 6 1", "{4}"), four = steps_of(TRAIN_LOADERS " 6 4", "{4}");
  EXPECT_EQ(one.size(), 6u);
  EXPECT_EQ(four, one);
  EXPECT_THAT(run_command(TRAIN_LOADERS " 6 2").output, HasSubstr("validation"));
}

}  // namespace
}  // namespace ranklab
