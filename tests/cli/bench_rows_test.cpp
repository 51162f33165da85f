// A benchmark that is interrupted keeps its finished rows.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/bench/gemm_limit.h"
#include "tests/cli/ranklab_program.h"
#include "tests/cli/run_program.h"
#include "tests/eventually.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

struct BenchRow {
  const char* arguments;  // that take minutes
  const char* row;        // how one of the first rows begins
};
void PrintTo(const BenchRow& row, std::ostream* out) { *out << row.arguments; }

class BenchRows : public testing::TestWithParam<BenchRow> {};

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_P(BenchRows, AreWrittenAsTheyCome) {
  const std::string path = temporary_path("ranklab_bench_rows.txt");
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::execl("/bin/sh", "sh", "-c", (std::string("exec '" RANKLAB_BINARY "' bench ") + GetParam().arguments).c_str(),
            nullptr);
    ::_exit(127);
  }
  bool seen = false;
  for (int i = 0; i < 6000 && !seen; ++i) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it was to take longer: " << text_of(path);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    seen = text_of(path).find(std::string("\n") + GetParam().row) != std::string::npos;
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(seen) << text_of(path);
  EXPECT_EQ(text_of(path).back(), '\n') << "whole lines";
  fs::remove(path);
}

// As nccl-tests takes them.
TEST(BenchCollectives, SizesHaveSuffixes) {
  const auto rows = answer_of(ranklab("bench collectives --ranks 1 --sizes 4K,1M,512 --iterations 1 --json")).dump();
  for (const char* bytes : {"\"bytes\":4096,", "\"bytes\":1048576,", "\"bytes\":512,"})
    EXPECT_THAT(rows, testing::HasSubstr(bytes));
}

INSTANTIATE_TEST_SUITE_P(
    All, BenchRows,
    testing::Values(
        BenchRow{"collectives --ranks 2 --sizes 4096,16384 --iterations 1000", "all_reduce "},
        BenchRow{"dispatchers --ranks 2 --experts 8 --topk 2 --tokens 8000 --hidden 256 --iterations 10", "alltoall "},
        BenchRow{"quantize --rows 1024 --cols 1024 --repetitions 20", "memcpy "},
        BenchRow{"precision --recipes bf16,fp8_delayed,mxfp8 --seeds 1 --train-iters 20 --num-layers 2 --hidden-size "
                 "64 --seq-length 64 --gbs 8",
                 "bf16 "},
        BenchRow{"kernels --device cpu --tokens 32 --seq-length 32 --parameters 100000 --iterations 1", "copy"},
        BenchRow{"train --modes single,dp8 --repetitions 1 --steps 1 --warmup 0", "single "},
        BenchRow{"overhead --repetitions 1 --steps 20", "layout "}),
    [](const auto& row) {
      return std::string(row.param.arguments).substr(0, std::string(row.param.arguments).find(' '));
    });

// A row is measured in its own process, which a scheduler or `timeout` does not know.
TEST(BenchProcess, EndsWithTheBenchmark) {
  for (const char* arguments : {"memory --warmup 1 --steps 1000000", "train --modes single --steps 1000000"}) {
    const pid_t bench = ::fork();
    if (bench == 0) {
      const int nothing = ::open("/dev/null", O_WRONLY);
      ::dup2(nothing, STDOUT_FILENO);
      ::execl("/bin/sh", "sh", "-c", (std::string("exec '" RANKLAB_BINARY "' bench ") + arguments).c_str(), nullptr);
      ::_exit(127);
    }
    const auto command_of = [](const std::string& pid) { return text_of("/proc/" + pid + "/cmdline"); };
    std::string row;
    const bool runs = eventually([&] {
      std::istringstream(run_command("cat /proc/" + std::to_string(bench) + "/task/*/children").output) >> row;
      return !row.empty() && command_of(row).find("--timed-steps") != std::string::npos;
    });
    EXPECT_TRUE(runs) << arguments;
    ::kill(bench, SIGTERM);
    ::waitpid(bench, nullptr, 0);
    if (!runs) continue;
    const bool gone = eventually([&] { return command_of(row).empty(); });
    EXPECT_TRUE(gone) << arguments << ": " << row;
    if (!gone) ::kill(std::stoi(row), SIGKILL);
  }
}

// docs/parity.md says what it shows.
TEST(BenchOverhead, SaysWhatWatchingCosts) {
  const std::string command = "'" RANKLAB_BINARY "' bench overhead --only watch --repetitions 1 --steps 1";
  const Outcome run = run_command(command + " 2>&1");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, ContainsRegex("^parity, --watch 50 \\(dp 4 x tp 2, sp, means of 1 steps\\): [0-9.]+ CPU "
                                        "ms/step, [0-9.]+ in a watched one, [+-][0-9.]+% at one of 50\n$"));
}

// The batch of the peer's model comes with the preset, and what layouts add to one rank trains.
TEST(BenchTrain, LayoutsTrainTheModelOfThePeer) {
  const Outcome run = run_command(
      "'" RANKLAB_BINARY "' bench train --repetitions 1 --steps 1 --warmup 0 --modes zero3,3d,ep8,ep8-recompute 2>&1");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const char* mode : {"zero3", "3d", "ep8", "ep8-recompute"})
    EXPECT_THAT(run.output, HasSubstr("\n" + std::string(mode) + " ")) << mode;
  // The rows of the table say in percent how much of a step's time products alone would take.
  EXPECT_THAT(run.output, ContainsRegex("\nep8 +ranklab +[0-9.]+ +[0-9]+ +[0-9.]+ +[0-9]+ +[1-9][0-9]?%"));
  const Outcome bad = run_command("'" RANKLAB_BINARY "' bench train --modes dp9 2>&1");
  EXPECT_EQ(bad.exit_code, 2) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("[bench train] unknown mode; got 'dp9'; want single, dp8, zero1"));
}

TEST(BenchTrain, TheLimitIsTheTimeOfTheModelsProductsAlone) {
  const GemmLimit limit{.step_flops = 3e9, .peak_flops = 1.5e11};
  EXPECT_DOUBLE_EQ(limit.ms(), 20);
  EXPECT_DOUBLE_EQ(limit.share(80), 0.25);

  const Outcome run = run_command("'" RANKLAB_BINARY
                                  "' bench step --num-layers 2 --hidden-size 64 --ffn-hidden-size 96 --vocab-size 256 "
                                  "--num-attention-heads 4 --seq-length 32 --gbs 8 --world-size 2 --dp 2");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto told = nlohmann::json::parse(run.output);
  // Weights of products: 4 of attention, 3 of the MLP, the head; causal attention reads half of 32 positions.
  const double weights = 2 * (4.0 * 64 * 64 + 3.0 * 64 * 96) + 256.0 * 64, attention = 2 * 2.0 * 64 * 32 / 2;
  EXPECT_NEAR(told.at("step_gflop"), 8 * 32 * (6 * weights + 6 * attention) * 1e-9, 1e-9);
  const double step_ms = told.at("step_ms_median"), limit_ms = told.at("limit_ms"), share = told.at("limit_share");
  const double rate = told.at("gemm_gflop_per_s"), gflop = told.at("step_gflop");
  EXPECT_GT(rate, 1);
  EXPECT_NEAR(limit_ms, gflop / rate * 1e3, 1e-9 * limit_ms);
  EXPECT_NEAR(share, limit_ms / step_ms, 1e-9);

  const Outcome table =
      run_command("'" RANKLAB_BINARY "' bench train --modes pp4-vpp2 --repetitions 1 --steps 1 --warmup 0 --json");
  ASSERT_EQ(table.exit_code, 0) << table.output;
  const auto rows = nlohmann::json::parse(table.output).at("data").at("rows");
  // oneDNN's where LibTorch has it for this processor.
  const Outcome onednn = run_command("'" RANKLAB_BINARY
                                     "' bench step --num-layers 1 --hidden-size 32 --ffn-hidden-size 32 "
                                     "--num-attention-heads 4 --seq-length 8 --gbs 2 --world-size 1 --gemm onednn");
  ASSERT_TRUE(onednn.exit_code == 0 || onednn.exit_code == 3) << onednn.output;
  ASSERT_EQ(rows.size(), onednn.exit_code == 0 ? 3u : 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("mode"), "pp4-vpp2");
    EXPECT_NEAR(row.at("limit_share").get<double>() * row.at("step_ms").get<double>(), row.at("limit_ms"), 1e-6) << row;
  }
}

}  // namespace
}  // namespace ranklab
