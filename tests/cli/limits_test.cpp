// Under a shell's limits (ulimit) a run continues or ends with an error that names the limit, not by a signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const std::string kTiny =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --gbs 8 --mock-data --sample-tokens 0 "
    "--gemm mkl --train-iters 3 --eval-interval 0 --log-dir log ";

class Limits : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  // In a shell that may not raise its limits again, whoever runs the test.
  Outcome under(const std::string& limit, const std::string& arguments) const {
    const std::string no_root = ::geteuid() == 0 ? "setpriv --bounding-set=-sys_resource " : "";
    return run_command("cd '" + root_ + "' && " + no_root + "bash -c 'ulimit " + limit + "; \"" RANKLAB_BINARY "\" " +
                       arguments + "' 2>&1");
  }
  const std::string root_ = temporary_path("ranklab_limits");
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Limits, ASmallStackIsRefusedByNameOrDoes) {
  const Outcome refused = under("-s 128", "train " + kTiny);
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("[process] the stack is too small; got ulimit -s 128; want 512 (KiB) or more; "
                                        "do: ulimit -s 8192"));
  const Outcome raised = under("-S -s 128", "train " + kTiny);  // below the hard limit
  EXPECT_EQ(raised.exit_code, 0) << raised.output;
  const Outcome enough = under("-s 512", "train " + kTiny);
  EXPECT_EQ(enough.exit_code, 0) << enough.output;
}

// Wherever memory runs out, also where no thread can be started for the trace: the error says so, and nothing waits.
TEST_F(Limits, AddressSpaceThatRunsOutOnTheWayEndsTheRun) {
  for (const int kib : {900'000, 1'000'000, 1'050'000, 1'100'000, 1'150'000}) {
    const Outcome run = under("-v " + std::to_string(kib), "train " + kTiny);
    EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 3) << kib << ": " << run.output;
  }
}

TEST_F(Limits, TooLittleAddressSpaceIsRefusedBeforeLibTorchAborts) {
  const Outcome refused = under("-v 400000", "--version");
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("[process] too little address space to load LibTorch; got ulimit -v 400000; "
                                        "want 819200 (KiB) or more"));
  const Outcome enough = under("-v 1500000", "train " + kTiny);  // MKL takes more on processors with wider vectors
  EXPECT_EQ(enough.exit_code, 0) << enough.output;
}

// Enough to begin with, and not for this batch: of all ranks together, and of one rank's process.
TEST_F(Limits, MemoryThatRunsOutInARankIsNamedWithTheAmount) {
  const std::string large =
      "--tp 2 --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 2048 --vocab-size 4096 --gbs 16 "
      "--mbs 8 --mock-data --sample-tokens 0 --gemm mkl --train-iters 2 --eval-interval 0 --log-dir log ";
  for (const auto& [command, limit] :
       {std::pair("train --world-size 2 ", "1500000"), std::pair("launch --nproc-per-node 2 ", "1150000")}) {
    const Outcome outcome = under(std::string("-v ") + limit, command + large);
    EXPECT_EQ(outcome.exit_code, 3) << command << outcome.output;
    EXPECT_THAT(outcome.output,
                ContainsRegex(std::string("memory\\] memory is exhausted; got [0-9.]+ [KMG]iB more asked for, with "
                                          "ulimit -v ") +
                              limit + " \\(KiB\\); want .*; do: raise ulimit -v"))
        << command;
    std::filesystem::remove_all(root_ + "/log");
  }
}
#endif

TEST_F(Limits, AFileThatMayNotGrowIsALostOutput) {
  const Outcome lost = under("-f 1", "train " + kTiny);
  EXPECT_EQ(lost.exit_code, 9) << lost.output;
  EXPECT_THAT(lost.output, HasSubstr("File too large"));
  EXPECT_THAT(lost.output, HasSubstr("done after 3 steps"));
  const Outcome unsaved = under("-f 8", "train --save ck " + kTiny);
  EXPECT_EQ(unsaved.exit_code, 1) << unsaved.output;
  EXPECT_THAT(unsaved.output, HasSubstr("File too large"));
}

TEST_F(Limits, TooFewDescriptorsAreNamed) {
  const Outcome refused = under("-n 16", "launch --nproc-per-node 4 --tp 1 " + kTiny);
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("too few file descriptors for 4 ranks in processes; got ulimit -n 16; want"));
  const Outcome raised = under("-S -n 16", "launch --nproc-per-node 4 --tp 1 " + kTiny);
  EXPECT_EQ(raised.exit_code, 0) << raised.output;
}

// A checkpoint of many ranks has more files than a shell lets a program open at first.
TEST_F(Limits, ACheckpointOfManyFilesIsReadOrTheLimitIsNamed) {
  const Outcome saved = under("-f unlimited", "train --world-size 8 --save ck " + kTiny);
  ASSERT_EQ(saved.exit_code, 0) << saved.output;
  const Outcome raised = under("-S -n 8", "ckpt verify ck");
  EXPECT_EQ(raised.exit_code, 0) << raised.output;
  const Outcome refused = under("-n 8", "ckpt verify ck");
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("[checkpoint] too many files are open to read 'ck/step_00000003/rank_0000"));
  EXPECT_THAT(refused.output, HasSubstr("do: raise it: ulimit -n"));
}

}  // namespace
}  // namespace ranklab
