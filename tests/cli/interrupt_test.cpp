// Ctrl-C at any moment: before the first line, while data and weights are made, in a step, in a validation, in the
// sample, while the trace is written. The program is gone within two seconds with 130 (SIGTERM: 143) and its files are
// whole.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Interrupt : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("ranklab_interrupt_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  pid_t start(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {RANKLAB_PROGRAM, "train", "--log-dir", log_dir()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string output = (folder_ / "output").string();
    if (std::freopen(output.c_str(), "w", stdout) == nullptr || std::freopen(output.c_str(), "a", stderr) == nullptr)
      ::_exit(99);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  // As a shell shows it: 128 + the signal for a process that a signal ended.
  static int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

  void expect_stops(pid_t pid, int signal) const {
    ::kill(pid, signal);
    const auto begin = Clock::now();
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (Clock::now() - begin > milliseconds(10'000)) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, &status, 0);
        break;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
    EXPECT_LT(Clock::now() - begin, milliseconds(2'000)) << output();
    EXPECT_EQ(exit_code(status), 128 + signal) << output();
  }

  void expect_whole_files() const {
    std::ifstream metrics(log_dir() + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) {
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
      EXPECT_FALSE(metrics.eof()) << "the last line has no end: " << line;
    }
    const std::string trace = log_dir() + "/trace.json.gz";
    if (fs::exists(trace)) {
      const Outcome sound = run_command(std::string(RANKLAB_PROGRAM) + " trace validate " + trace + " 2>&1");
      EXPECT_EQ(sound.exit_code, 0) << sound.output;
    }
  }
  std::string output() const {
    std::ifstream in(folder_ / "output");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  bool wait_for_output(const std::string& text) const {
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < end) {
      if (output().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }
  std::string log_dir() const { return (folder_ / "log").string(); }

  fs::path folder_;
};

TEST_F(Interrupt, AtRandomMoments) {
  std::mt19937 random(20);
  for (int i = 0; i < 12; ++i) {
    const pid_t pid = start({"--mock-data", "--eval-interval", "2", "--eval-iters", "2", "--sample-tokens", "20"});
    std::this_thread::sleep_for(milliseconds(random() % 1'500));
    expect_stops(pid, i % 4 == 3 ? SIGTERM : SIGINT);
    expect_whole_files();
    fs::remove_all(log_dir());
  }
}

TEST_F(Interrupt, InAStepTheLogAndTheTraceAreKept) {
  const pid_t pid = start({"--mock-data", "--eval-interval", "0", "--train-iters", "100000"});
  ASSERT_TRUE(wait_for_output("\n     3  ")) << output();
  expect_stops(pid, SIGINT);
  expect_whole_files();
  EXPECT_TRUE(fs::exists(log_dir() + "/trace.json.gz")) << output();
}

TEST_F(Interrupt, InAStepThatTakesLong) {
  const pid_t pid =
      start({"--mock-data", "--preset", "peer_m", "--gbs", "64", "--train-iters", "50", "--eval-interval", "0"});
  ASSERT_TRUE(wait_for_output("exposed comm")) << output();
  std::this_thread::sleep_for(milliseconds(300));
  expect_stops(pid, SIGINT);
  expect_whole_files();
}

TEST_F(Interrupt, InALongValidation) {
  const pid_t pid = start({"--mock-data", "--eval-interval", "1", "--eval-iters", "100000", "--train-iters", "5"});
  ASSERT_TRUE(wait_for_output("\n     0  ")) << output();
  std::this_thread::sleep_for(milliseconds(200));
  expect_stops(pid, SIGINT);
  expect_whole_files();
}

TEST_F(Interrupt, WhileLargeWeightsAreMade) {
  const pid_t pid = start({"--mock-data", "--preset", "llama_1b", "--num-layers", "2", "--tp", "8", "--seq-length",
                           "128", "--gbs", "8", "--optimizer", "sgd"});
  ASSERT_TRUE(wait_for_output("making ")) << output();
  std::this_thread::sleep_for(milliseconds(300));
  expect_stops(pid, SIGINT);
}

}  // namespace
}  // namespace ranklab
