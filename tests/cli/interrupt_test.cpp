// Ctrl-C at any moment: before the first line, while data and weights are made, in a step, in a validation, in the
// sample, while the trace is written. The program is gone within two seconds with 130 (SIGTERM: 143) and its files are
// whole.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/default_signals.h"
#include "tests/cli/run_program.h"
#include "tests/eventually.h"
#include "tests/fair_clock.h"
#include "tests/free_port.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Interrupt : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("ranklab_interrupt_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    // Programs of a test that failed before its end.
    for (const pid_t pid : running_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  pid_t start(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {"train", "--log-dir", log_dir()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return start_command(std::move(words));
  }
  pid_t start_command(std::vector<std::string> words) const {
    words.insert(words.begin(), RANKLAB_BINARY);
    const pid_t pid = ::fork();
    if (pid > 0) running_.insert(pid);
    if (pid != 0) return pid;
    use_default_signals();
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string output = (folder_ / "output").string();
    if (std::freopen(output.c_str(), "w", stdout) == nullptr || std::freopen(output.c_str(), "a", stderr) == nullptr)
      ::_exit(99);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  int wait_end(pid_t pid) const {
    int status = 0;
    ::waitpid(pid, &status, 0);
    running_.erase(pid);
    return exit_code(status);
  }
  // As a shell shows it: 128 + the signal for a process that a signal ended.
  static int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

  void expect_stops(pid_t pid, int signal) const {
    ::kill(pid, signal);
    const FairClock clock;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (clock.seconds() > 10) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, &status, 0);
        break;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
    running_.erase(pid);
    EXPECT_LT(clock.seconds(), 2.0) << output();
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
  int leftovers() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(log_dir()))
      count += entry.path().filename().string().find(".part") != std::string::npos ? 1 : 0;
    return count;
  }
  std::string output() const {
    std::ifstream in(folder_ / "output");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  bool wait_for_output(const std::string& text) const {
    return eventually([&] { return output().find(text) != std::string::npos; });
  }
  std::string log_dir() const { return (folder_ / "log").string(); }

  fs::path folder_;
  mutable std::set<pid_t> running_;
};

// Milliseconds a step: what is in progress may go on for 1.2 seconds, and is then abandoned, on a busy machine, too.
const std::vector<std::string> kTinyWords = {
    "--num-layers", "2", "--hidden-size", "32", "--num-attention-heads", "4", "--seq-length", "32",  "--gbs",      "8",
    "--world-size", "4", "--pp",          "2",  "--sample-tokens",       "0", "--gemm",       "mkl", "--mock-data"};

std::vector<std::string> tiny_run(std::vector<std::string> words) {
  words.insert(words.end(), kTinyWords.begin(), kTinyWords.end());
  return words;
}

// All steps traced.
std::vector<std::string> traced_run(const char* steps) {
  return tiny_run({"--train-iters", steps, "--eval-interval", "0", "--trace-step-end", "1000000"});
}
const char* const kManySteps = "1000000";

double processor_seconds(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

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
  const pid_t pid = start(tiny_run({"--eval-interval", "0", "--train-iters", kManySteps}));
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

// However many steps were traced: the trace is written while they are trained.
TEST_F(Interrupt, AfterManyTracedSteps) {
  const pid_t pid = start(traced_run(kManySteps));
  ASSERT_TRUE(wait_for_output("\n   400  ")) << output();
  expect_stops(pid, SIGTERM);
  expect_whole_files();
  const Outcome info = run_command(std::string(RANKLAB_PROGRAM) + " trace info --json " + log_dir() + "/trace.json.gz");
  ASSERT_EQ(info.exit_code, 0) << info.output;
  EXPECT_EQ(leftovers(), 0);
  // Every step that the log has is in the trace.
  std::ifstream log(log_dir() + "/log.txt");
  std::string last;
  for (std::string line; std::getline(log, line);) last = line;
  const std::string step = last.substr(0, last.find(' '));
  EXPECT_EQ(run_command(std::string(RANKLAB_PROGRAM) + " trace stats --json --step " + step + " " + log_dir() +
                        "/trace.json.gz")
                .exit_code,
            0)
      << "step " << step;
}

// What a killed run leaves is read up to its last whole step, and a later run there clears it away.
TEST_F(Interrupt, AKilledRunLeavesAReadableTrace) {
  const pid_t pid = start(traced_run(kManySteps));
  ASSERT_TRUE(wait_for_output("\n    50  ")) << output();
  ::kill(pid, SIGKILL);
  wait_end(pid);
  EXPECT_FALSE(fs::exists(log_dir() + "/trace.json.gz"));
  ASSERT_EQ(leftovers(), 1);
  const Outcome stats = run_command(std::string(RANKLAB_PROGRAM) + " trace stats --step 40 " + log_dir() + " 2>&1");
  EXPECT_NE(stats.output.find("broken after"), std::string::npos) << stats.output;
  EXPECT_NE(stats.output.find("step 40"), std::string::npos) << stats.output;
  const Outcome sound =
      run_command(std::string(RANKLAB_PROGRAM) + " trace validate " + log_dir() + "/trace.json.gz.part* 2>&1");
  EXPECT_NE(sound.exit_code, 0);
  for (const char* command : {"trace info ", "trace info --json ", "schedule simulate 1f1b --pp 2 --trace "}) {
    const Outcome read = run_command(std::string(RANKLAB_PROGRAM) + " " + command + log_dir() + " 2>&1");
    EXPECT_EQ(read.exit_code, 0) << read.output;
    EXPECT_NE(read.output.find("broken after"), std::string::npos) << read.output;
  }
  EXPECT_EQ(wait_end(start(traced_run("3"))), 0) << output();
  EXPECT_EQ(leftovers(), 0);
}

// The work in progress is abandoned; the trace of the steps before it is kept.
TEST_F(Interrupt, InALongValidation) {
  const pid_t pid = start(tiny_run({"--eval-interval", "1", "--eval-iters", "1000000", "--train-iters", "5"}));
  ASSERT_TRUE(wait_for_output("\n     0  ")) << output();
  std::this_thread::sleep_for(milliseconds(200));
  expect_stops(pid, SIGINT);
  EXPECT_TRUE(fs::exists(log_dir() + "/trace.json.gz")) << output();
  expect_whole_files();
}

TEST_F(Interrupt, WhileLargeWeightsAreMade) {
  const pid_t pid = start({"--mock-data", "--preset", "llama_1b", "--num-layers", "2", "--tp", "8", "--seq-length",
                           "128", "--gbs", "8", "--optimizer", "sgd"});
  ASSERT_TRUE(wait_for_output("making ")) << output();
  std::this_thread::sleep_for(milliseconds(300));
  expect_stops(pid, SIGINT);
}

// Nothing of them is kept, so they end after the batch or the token, not when the patience with work in progress ends.
TEST_F(Interrupt, EvalAndGenerateEndAtOnce) {
  const std::string text = (folder_ / "text").string();
  std::ofstream(text) << std::string(20'000'000, 'a');
  std::vector<std::string> eval = {"eval", "--text", text}, generate = {"generate", "--tokens", "10000000"};
  for (std::vector<std::string>& words : {std::ref(eval), std::ref(generate)}) {
    words.insert(words.end(), kTinyWords.begin(), kTinyWords.end() - 1);
    for (const int signal : {SIGINT, SIGTERM}) {
      const pid_t pid = start_command(words);
      std::this_thread::sleep_for(milliseconds(1'500));
      expect_stops(pid, signal);
      EXPECT_EQ(output().find("abandoned"), std::string::npos) << output();
    }
  }
}

// Rank 0 is in a sequence that takes seconds when rank 1, whose sequences are short, gets the signal.
TEST_F(Interrupt, EvalEndsInAnotherProcessAsIfItHadGotTheSignal) {
  const std::string tasks = (folder_ / "tasks.jsonl").string();
  const std::string line = R"({"query": "a", "choices": [")" + std::string(4'000, 'a') + R"(", ")" +
                           std::string(200, 'a') + R"("], "gold": 0})" + "\n";
  std::ofstream out(tasks);
  for (int i = 0; i < 2'000; ++i) out << line;
  out.close();
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(free_port()).c_str(), 1);
  std::vector<pid_t> pids;
  for (const char* rank : {"0", "1"}) {
    for (const char* name : {"RANK", "LOCAL_RANK"}) ::setenv(name, rank, 1);
    pids.push_back(start_command({"eval", "--tasks", tasks, "--dp", "2", "--mbs", "1", "--seq-length", "4096"}));
  }
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  ASSERT_TRUE(eventually([&] { return processor_seconds(pids[1]) > 2; })) << output();
  expect_stops(pids[1], SIGTERM);
  EXPECT_EQ(wait_end(pids[0]), 128 + SIGTERM) << output();
  EXPECT_EQ(output(), "") << "nothing failed";
}

TEST_F(Interrupt, TemporaryFoldersAreRemoved) {
  const std::string temporary = (folder_ / "tmp").string();
  fs::create_directories(temporary);
  ::setenv("TMPDIR", temporary.c_str(), 1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t pid = start_command({"museum", "run", "all"});
    EXPECT_TRUE(eventually([&] { return !fs::is_empty(temporary); })) << output();
    ::kill(pid, signal);
    EXPECT_EQ(wait_end(pid), 128 + signal) << output();
    EXPECT_TRUE(eventually([&] { return fs::is_empty(temporary); }));
  }
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace ranklab
