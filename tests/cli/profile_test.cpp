// ranklab train --profile: PyTorch's profile holds the ops of just the steps that were asked for, forward and backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

constexpr const char* kTinyProfiled =
    " --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --gbs 8 --mock-data --sample-tokens 0"
    " --eval-interval 0 --gemm mkl --world-size 2 --dp 2 ";

nlohmann::json profile_of(const std::string& flags) {
  const std::string folder = temporary_path("ranklab_profile");
  const Outcome outcome = run_command(std::string(RANKLAB_PROGRAM) + " train --profile" + kTinyProfiled + flags +
                                      " --log-dir " + folder + " 2>&1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  return nlohmann::json::parse(std::ifstream(folder + "/profile.json"));
}

int calls_of(const nlohmann::json& profile, const std::string& op) {
  int count = 0;
  for (const auto& event : profile.at("traceEvents")) count += event.value("name", "") == op ? 1 : 0;
  return count;
}

TEST(Profile, HoldsTheOpsOfTheStepsThatWereAskedFor) {
  const nlohmann::json one = profile_of("--train-iters 4 --profile-step-start 2 --profile-step-end 3");
  const nlohmann::json two = profile_of("--train-iters 4 --profile-step-start 1 --profile-step-end 3");
  EXPECT_GT(calls_of(one, "aten::mm"), 0);
  EXPECT_GT(calls_of(one, "aten::_fused_adamw_"), 0);  // behind the backward
  EXPECT_EQ(calls_of(two, "aten::mm"), 2 * calls_of(one, "aten::mm"));
}

// A successful run on a machine without a GPU says nothing of errors, unless the user asks Kineto to talk.
TEST(Profile, OnACpuReportsNoErrors) {
  const std::string words = std::string(RANKLAB_PROGRAM) + " train --profile --train-iters 2" + kTinyProfiled +
                            " --log-dir " + temporary_path("ranklab_quiet_profile");
  const Outcome quiet = run_command("env -u KINETO_LOG_LEVEL " + words + " 2>&1 >/dev/null");
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_THAT(quiet.output, testing::Not(testing::HasSubstr("ERROR")));
  const Outcome talking = run_command("KINETO_LOG_LEVEL=0 " + words + " 2>&1 >/dev/null");
  EXPECT_NE(talking.output, quiet.output);
}

TEST(Profile, OfARunThatEndsEarlierIsWrittenAtItsEnd) {
  EXPECT_GT(calls_of(profile_of("--train-iters 2 --profile-step-start 1 --profile-step-end 50"), "aten::mm"), 0);
}

}  // namespace
}  // namespace ranklab
