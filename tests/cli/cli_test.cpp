#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/config/settings/fields.h"
#include "tests/cli/default_signals.h"
#include "tests/cli/ranklab_program.h"
#include "tests/eventually.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string kTinyTrain =
    "train --mock-data --num-layers 2 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 --seq-length 32 "
    "--gbs 8 "
    "--lr-warmup-iters 0 --sample-tokens 8 ";

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("ranklab_cli_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string log_dir() const { return " --log-dir " + directory_.string(); }
  fs::path directory_;
};

TEST_F(Cli, TrainsAndLeavesLogMetricsTraceAndSample) {
  const Outcome run = ranklab_and_errors(kTinyTrain + "--train-iters 3 --eval-interval 3 --eval-iters 1" + log_dir());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("8 rank threads"), HasSubstr("pp 2 x dp 2 x tp 2, sequence parallel"),
                                HasSubstr("virtual ms"), HasSubstr("exposed comm"), HasSubstr("done after 3 steps"),
                                HasSubstr("sample:\nAnd the ")));
  EXPECT_TRUE(fs::exists(directory_ / "log.txt"));
  EXPECT_TRUE(fs::exists(directory_ / "metrics.jsonl"));
  EXPECT_THAT(run.output, HasSubstr((directory_ / "trace.json.gz").string()));

  const std::string trace = (directory_ / "trace.json.gz").string();
  const Outcome info = ranklab_and_errors("trace info " + trace);
  EXPECT_EQ(info.exit_code, 0) << info.output;
  EXPECT_THAT(info.output, HasSubstr("tp"));
  const Outcome valid = ranklab_and_errors("trace validate " + trace);
  EXPECT_EQ(valid.exit_code, 0) << valid.output;
}

// As when a run resumes after the traced steps: its trace would be empty.
TEST_F(Cli, SaysWhereNoStepIsTraced) {
  const Outcome run =
      ranklab_and_errors(kTinyTrain + "--world-size 1 --tp 1 --pp 1 --train-iters 1 --trace-step-start 5" + log_dir());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("trace    no step: this run's are 0 to 0, and 5 to 24 are traced"));
  EXPECT_THAT(run.output, Not(HasSubstr("ranklab viz ")));
}

// A folder may be named like a command whose module is not there.
TEST_F(Cli, OnlyTheCommandOfALineAsksForItsModule) {
  fs::create_directories(directory_);
  fs::copy_file(RANKLAB_BINARY, directory_ / "ranklab");
  std::ofstream(directory_ / "words.txt") << std::string(4000, 'w');
  const std::string here = "cd " + directory_.string() + " && env -u RANKLAB_DRIVER ./ranklab --color never ";
  const Outcome data = run_command(here + "data prepare words.txt --out trace 2>&1");
  EXPECT_EQ(data.exit_code, 0) << data.output;
  EXPECT_TRUE(fs::is_directory(directory_ / "trace"));
  const Outcome trace = run_command(here + "trace info trace 2>&1");
  EXPECT_EQ(trace.exit_code, 3) << trace.output;
  EXPECT_THAT(trace.output, HasSubstr("[module viz] this command's module cannot be opened; got nothing at "));
}

// Commands that read settings, reject them or draw schedules neither need nor load LibTorch.
TEST_F(Cli, LoadsLibTorchWhereItIsNeededOnly) {
  fs::create_directories(directory_);
  fs::copy_file(RANKLAB_BINARY, directory_ / "ranklab");
  const std::string here = "cd " + directory_.string() + " && LC_ALL=C ./ranklab --color never ";
  for (const char* alone :
       {"--help", "--version", "train --help", "train --print-config", "config show", "list presets",
        "topo --preset none --tp 4", "precision recipes", "completion bash", "parity --help", "plan run --help",
        "plan search --help", "plan memory --help", "zero map --help", "generate --help", "eval --help"}) {
    const Outcome run = run_command(here + alone + " 2>&1");
    EXPECT_EQ(run.exit_code, 0) << alone << "\n" << run.output;
  }
  struct Refused {
    const char* arguments;
    int exit_code = 2;
  };
  constexpr Refused kRefused[] = {{"train --tp 3"},
                                  {"data batch --step 1 --tp 3"},
                                  {"parity --tp 3"},
                                  {"parity --all --out x.html"},
                                  {"parity --types --audit"},
                                  {"parity --audit --dumps a --dumps b"},
                                  {"parity --out x.txt"},
                                  {"parity --against --tpp 3"},
                                  {"plan run --tp 3"},
                                  {"plan search --tp 2"},
                                  {"plan memory --tp 3"},
                                  {"zero map --tp 3"},
                                  {"generate --prompt ''"},
                                  {"generate --tp 3"},
                                  {"eval"},
                                  {"eval --text a --stride 0"},
                                  {"eval --text a --tp 3"},
                                  {"plan validate none.json", 1}};
  for (const auto& [refused, exit_code] : kRefused) {
    const Outcome run = run_command(here + refused + " 2>&1");
    EXPECT_EQ(run.exit_code, exit_code) << refused;
    EXPECT_THAT(run.output, AllOf(HasSubstr("ranklab: error: "), Not(HasSubstr("[module ")))) << refused;
  }
  for (const char* command : {"train --mock-data", "train --dry-run", "doctor", "topo --tp 2"}) {
    const Outcome run = run_command(here + command + " 2>&1");
    EXPECT_EQ(run.exit_code, 3) << command;
    EXPECT_THAT(run.output,
                AllOf(HasSubstr("[module training] this command's module cannot be opened; got nothing at "),
                      HasSubstr("; do: ./ranklab build")));
  }
}

TEST_F(Cli, ShowsTheLossScaleAndStepsWithoutAnUpdate) {
  const Outcome run = ranklab_and_errors(
      kTinyTrain + "--train-iters 2 --eval-interval 0 --fp16 --initial-loss-scale 16777216" + log_dir());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("waiting  loss scale\n"), HasSubstr("    16777216  overflow, skipped\n"),
                                HasSubstr("     8388608")));
  EXPECT_THAT(ranklab_and_errors(kTinyTrain + "--train-iters 1 --eval-interval 0" + log_dir()).output,
              Not(HasSubstr("loss scale")));
}

TEST_F(Cli, ShowsTheLargestLogitAndClippedHeads) {
  const std::string run_two = kTinyTrain + "--train-iters 2 --eval-interval 0 --qk-clip --qk-clip-threshold ";
  const Outcome low = ranklab_and_errors(run_two + "1e-4" + log_dir());
  EXPECT_EQ(low.exit_code, 0) << low.output;
  EXPECT_THAT(low.output, AllOf(HasSubstr("  max logit  clipped\n"), Not(HasSubstr("        0\n"))));
  EXPECT_THAT(ranklab_and_errors(run_two + "1e4" + log_dir()).output, HasSubstr("        0\n"));
  std::ifstream metrics(directory_ / "metrics.jsonl");
  const std::string lines((std::istreambuf_iterator<char>(metrics)), std::istreambuf_iterator<char>());
  EXPECT_THAT(lines, AllOf(HasSubstr("\"max_attention_logit\":0."), HasSubstr("\"clipped_heads\":0")));
}

TEST_F(Cli, TheSameLossesOnEveryTransport) {
  std::vector<std::string> logs;
  for (const char* path : {"--collectives direct", "--collectives gloo", "--collectives gloo --transport tcp"}) {
    const Outcome run =
        ranklab_and_errors(kTinyTrain + "--train-iters 2 --eval-interval 0 --no-trace " + path + log_dir());
    EXPECT_EQ(run.exit_code, 0) << run.output;
    std::ifstream in(directory_ / "log.txt");
    logs.emplace_back((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_EQ(logs[0], logs[2]);
}

TEST_F(Cli, HelpShowsEverySetting) {
  const Outcome help = ranklab_and_errors("train --help-all");
  EXPECT_EQ(help.exit_code, 0);
  for (const ConfigField& field : config_fields()) {
    for (const std::string& flag : field.flags) EXPECT_THAT(help.output, HasSubstr(flag));
    EXPECT_THAT(help.output, HasSubstr(field.help.substr(0, 20)));
  }
}

TEST_F(Cli, ACommandWithoutItsSubcommandPrintsItsHelp) {
  for (const std::string command : {"museum", "schedule", "data tokenizer"}) {
    const Outcome run = ranklab_and_errors(command);
    EXPECT_EQ(run.exit_code, 0) << command;
    EXPECT_THAT(run.output, HasSubstr("Usage: ranklab " + command + " "));
    EXPECT_EQ(run.output, ranklab_and_errors(command + " --help").output);
  }
}

TEST_F(Cli, MistakesAreUsageErrorsThatSayWhatToDo) {
  const Outcome flag = ranklab_and_errors("train --train-itres 3");
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.output, HasSubstr("did you mean '--train-iters'?"));
  const Outcome command = ranklab_and_errors("trian");
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_THAT(command.output, HasSubstr("did you mean 'train'?"));
  const Outcome value = ranklab_and_errors("train --tp 3");
  EXPECT_EQ(value.exit_code, 2);
  EXPECT_THAT(value.output, AllOf(HasSubstr("3"), HasSubstr("8")));
  const Outcome preset = ranklab_and_errors("train --preset gpt_tinny");
  EXPECT_EQ(preset.exit_code, 2);
  EXPECT_THAT(preset.output, HasSubstr("gpt_tiny"));
  const Outcome path = ranklab_and_errors("train --data-path /no/such/file" + log_dir());
  EXPECT_EQ(path.exit_code, 1);
  EXPECT_THAT(path.output, HasSubstr("/no/such/file"));
  const Outcome trace = ranklab_and_errors("trace validate /no/such/trace.json");
  EXPECT_EQ(trace.exit_code, 1);
}

TEST_F(Cli, AnInterruptFinishesTheStepAndKeepsTheTrace) {
  fs::create_directories(directory_);
  const std::string command =
      std::string(RANKLAB_BINARY) + " " + kTinyTrain + "--train-iters 1000000 --eval-interval 0" + log_dir();
  const pid_t child = ::fork();
  if (child == 0) {
    use_default_signals();
    std::freopen((directory_ / "out.txt").c_str(), "w", stdout);
    std::freopen((directory_ / "out.txt").c_str(), "a", stderr);
    ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    ::_exit(127);
  }
  const bool trains = eventually([&] {
    std::error_code ignored;
    return fs::file_size(directory_ / "log.txt", ignored) > 20 && !ignored;
  });
  EXPECT_TRUE(trains);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(ranklab_and_errors("trace validate " + (directory_ / "trace.json.gz").string()).exit_code, 0);
}

// A bug has its layout: in other layouts it is injected and has no effect.
TEST_F(Cli, AnInjectedBugIsToldAlsoWhereItShowsNothing) {
  const std::string bug = "--inject norm-unreduced ";
  EXPECT_THAT(ranklab_and_errors(kTinyTrain + "--train-iters 1 " + bug + log_dir()).output,
              HasSubstr("this run is wrong on purpose (ranklab museum show norm-unreduced)"));
  const std::string tiny =
      "parity --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --mock-data --gbs 8 "
      "--train-iters 1 "
      "--tp 1 --dp 2 ";
  const Outcome same = ranklab_and_errors(tiny + bug);
  EXPECT_EQ(same.exit_code, 0) << same.output;
  EXPECT_THAT(same.output,
              HasSubstr("norm-unreduced has no visible effect in this layout and these steps; ranklab museum show"));
  EXPECT_THAT(ranklab_and_errors(tiny).output, testing::Not(HasSubstr("has no visible effect")));
}

TEST_F(Cli, CudaOnAMachineWithoutItIsOneClearError) {
  const Outcome run = ranklab_and_errors(kTinyTrain + "--backend cuda --world-size 1 --tp 1" + log_dir());
  if (run.exit_code == 0) GTEST_SKIP() << "this machine has a GPU and the CUDA module";
  EXPECT_EQ(run.exit_code, 3) << run.output;
  EXPECT_THAT(run.output, HasSubstr("do:"));
}

}  // namespace
}  // namespace ranklab
