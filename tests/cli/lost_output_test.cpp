// A full disk, a pipe without a reader and a removed log folder lose what was to be written there, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LostOutput : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_ + "/r");
  }
  // Runs it in the folder of the test. `ranklab` and `tiny` (a training of six steps) may be called.
  Outcome run(const std::string& script) const {
    std::ofstream(root_ + "/run.sh")
        << "ranklab() { timeout 300 '" RANKLAB_PROGRAM
           "' \"$@\"; }\n"
           "tiny() { ranklab ${HOW:-train} --world-size 2 --dp 2 --num-layers 1 --hidden-size 32 --num-attention-heads "
           "4 "
           "--seq-length 32 --gbs 4 --mock-data --sample-tokens 0 --gemm mkl --log-dir r \"$@\"; }\n"
        << script << "\n";
    return run_command("cd '" + root_ + "' && bash run.sh 2>&1");
  }
  std::string text(const std::string& name) const {
    std::ifstream in(root_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::string root_ = temporary_path("ranklab_lost_output");
};

TEST_F(LostOutput, AFullDiskUnderTheLogEndsInAnOwnExitCode) {
  const Outcome outcome = run("ln -s /dev/full r/metrics.jsonl; tiny --train-iters 6 --save ck");
  EXPECT_EQ(outcome.exit_code, 9) << outcome.output;
  const std::string said = "error: [log] cannot write the log; got 'r/metrics.jsonl': No space left on device";
  const size_t at = outcome.output.find(said);
  ASSERT_NE(at, std::string::npos) << outcome.output;
  EXPECT_LT(at, outcome.output.find("done after 6 steps")) << "said when it happens";
  EXPECT_EQ(outcome.output.find(said, at + 1), std::string::npos) << "said once";
  EXPECT_THAT(text("r/log.txt"), HasSubstr("5 train "));
  EXPECT_TRUE(fs::exists(root_ + "/r/trace.json.gz"));
  EXPECT_EQ(run("ranklab ckpt verify ck").exit_code, 0);
}

TEST_F(LostOutput, AFullDeviceUnderTheJsonIsNoSuccess) {
  const Outcome outcome = run("tiny --train-iters 6 --save ck --json >/dev/full");
  EXPECT_EQ(outcome.exit_code, 9) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("[stdout] cannot write"), HasSubstr("No space left on device"),
                                    HasSubstr("done after 6 steps")));
  EXPECT_EQ(run("ranklab ckpt verify ck").exit_code, 0);
  EXPECT_EQ(run("tiny --train-iters 2 >/dev/full").exit_code, 9) << "the table on stdout";
}

// As behind `| head`: the run ends as after Ctrl-C, with its log, trace and checkpoint, and says nothing of it.
TEST_F(LostOutput, AReaderThatIsGoneEndsTheRunAndCostsNothing) {
  for (const char* how : {"tiny", "tiny --json", "HOW='launch --nproc-per-node 2' tiny"}) {
    const std::string command = how;
    const Outcome outcome = run(command + " --train-iters 100000 --log-interval 1 --save ck | head -1 >/dev/null; " +
                                "exit ${PIPESTATUS[0]}");
    EXPECT_EQ(outcome.exit_code, 141) << outcome.output;
    EXPECT_THAT(outcome.output, Not(HasSubstr("error"))) << command;
    EXPECT_TRUE(fs::exists(root_ + "/r/trace.json.gz")) << command;
    EXPECT_EQ(run("ranklab ckpt verify ck").exit_code, 0) << command;
    fs::remove_all(root_ + "/ck");
  }
}

TEST_F(LostOutput, ADumpThatCannotBeWrittenCostsTheDump) {
  const Outcome outcome = run("touch r/dump; tiny --train-iters 4 --save ck --dump 'layers.0.mlp' --at step=1");
  EXPECT_EQ(outcome.exit_code, 9) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("[dump] cannot create folder"), HasSubstr("done after 4 steps")));
  EXPECT_EQ(run("ranklab ckpt verify ck").exit_code, 0);
}

TEST_F(LostOutput, ANewRunInTheFolderOfAnotherLeavesNothingThatIsTakenForItsOwn) {
  const std::string watched = "--sentinel-mode minimal";
  ASSERT_EQ(run("tiny --train-iters 2 --save ck " + watched).exit_code, 0);
  EXPECT_TRUE(fs::exists(root_ + "/r/sentinels.jsonl"));
  ASSERT_EQ(run("tiny --train-iters 4 --load ck --no-trace").exit_code, 0);
  const std::string kept = text("r/sentinels.jsonl");
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 2) << "a run that goes on keeps what was before";
  EXPECT_TRUE(fs::exists(root_ + "/r/trace.json.gz"));
  ASSERT_EQ(run("tiny --train-iters 3 --no-trace").exit_code, 0);
  EXPECT_FALSE(fs::exists(root_ + "/r/sentinels.jsonl"));
  EXPECT_FALSE(fs::exists(root_ + "/r/trace.json.gz"));
}

// The first files that a program opens would take the numbers of the closed streams, and receive what is printed.
TEST_F(LostOutput, ClosedStreamsLeaveTheirPlacesToNoFile) {
  EXPECT_EQ(run("tiny --train-iters 2 --save ck <&- >&- 2>&-").exit_code, 9);
  for (const char* lock : {"r/log.lock", "ck/lock"}) {
    const std::string held = text(lock);
    EXPECT_EQ(std::count(held.begin(), held.end(), '\n'), 1) << lock << ": " << held;
  }
}

TEST_F(LostOutput, ARemovedLogFolderIsNoticedAtOnce) {
  const Outcome outcome =
      run("tiny --train-iters 400 --json --save ck >out 2>err & while [ ! -s r/log.txt ]; do sleep 0.02; done\n"
          "rm -rf r; wait $!");
  const std::string said = text("err"), json = text("out");
  EXPECT_EQ(outcome.exit_code, 9) << said;
  EXPECT_THAT(said, AllOf(HasSubstr("'r/log.txt': the file was removed"), HasSubstr("r/trace.json.gz"),
                          HasSubstr("done after 400 steps")));
  EXPECT_LT(said.find("the file was removed"), said.find("done after"));
  // A program that reads the result learns of it, too.
  EXPECT_THAT(json.substr(json.rfind("\n", json.size() - 2) + 1),
              AllOf(HasSubstr("\"ok\":true"), HasSubstr("the file was removed"), HasSubstr("\"trace\":\"\"")));
  EXPECT_THAT(said, Not(HasSubstr("ranklab viz"))) << "there is no trace to see";
  EXPECT_EQ(run("ranklab ckpt verify ck").exit_code, 0);
}

TEST_F(LostOutput, EveryCommandSaysThatItsTextIsNotWhole) {
  for (const char* command : {"list presets", "plan memory --json", "config show", "--help"}) {
    const Outcome outcome = run("ranklab " + std::string(command) + " >/dev/full");
    EXPECT_EQ(outcome.exit_code, 9) << command << outcome.output;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("[stdout] "), HasSubstr("No space left"))) << command;
  }
  EXPECT_THAT(run("ranklab list presets").output, Not(HasSubstr("error")));
}

}  // namespace
}  // namespace ranklab
