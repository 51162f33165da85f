// Runs `ranklab launch` in a folder of its own, in the foreground or behind, and finds its ranks.
#pragma once
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cli/default_signals.h"
#include "tests/cli/run_program.h"
#include "tests/eventually.h"
#include "tests/fair_clock.h"

namespace ranklab {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// `--gemm mkl`: two measurements may choose differently, and then other bits are right.
inline const std::string kTiny =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --gbs 8 --lr-warmup-iters 0 "
    "--sample-tokens 0 --mock-data --gemm mkl ";
inline const std::string kShort = kTiny + "--train-iters 3 --eval-interval 3 --eval-iters 1 ";
inline const std::string kEndless =
    kTiny + "--train-iters 1000000 --eval-interval 3 --eval-iters 1 --log-interval 1000000 ";

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("ranklab_launch_" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    // Variables that another launcher may have left would count.
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "RANKLAB_RUN_TOKEN"}) ::unsetenv(name);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string folder(const std::string& name) const { return (directory_ / name).string(); }
  std::string log(const std::string& name) const { return " --log-dir " + folder(name) + " "; }
  // Both streams.
  static Outcome run_both(const std::string& command) { return run_command("exec 2>&1; " + command); }
  Outcome ranklab(const std::string& arguments) const {
    return run_both(std::string(RANKLAB_BINARY) + " " + arguments);
  }

  // Losses, norms and validation losses of a run, as the bits that the log holds (%.17g or better).
  std::vector<std::string> curve(const std::string& name) const {
    std::vector<std::string> out;
    std::ifstream in(folder(name) + "/metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto step = nlohmann::json::parse(line);
      if (step.contains("validation_loss")) {
        out.push_back("validation " + step["validation_loss"].dump());
        continue;
      }
      out.push_back(step.at("loss").dump() + " " + step.at("grad_norm").dump() + " virtual " +
                    step.at("virtual_step_ms").dump());
    }
    return out;
  }
  std::string text(const std::string& path) const {
    std::ifstream in(directory_ / path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void expect_sound(const std::string& name, int ranks) const {
    const Outcome valid = ranklab("trace validate " + folder(name) + "/trace.json.gz");
    EXPECT_EQ(valid.exit_code, 0) << valid.output;
    expect_readable(name, ranks);
  }
  // Also a trace that its run did not finish.
  void expect_readable(const std::string& name, int ranks) const {
    const Outcome info = ranklab("trace info " + folder(name));
    EXPECT_EQ(info.exit_code, 0) << info.output;
    EXPECT_THAT(info.output, HasSubstr(std::to_string(ranks) + " of " + std::to_string(ranks) + " ranks"));
  }

  // In the background, output to `name`.txt.
  pid_t start(const std::string& name, const std::string& command) const {
    const std::string out = folder(name + ".txt");
    const pid_t child = ::fork();
    if (child == 0) {
      use_default_signals();
      const int file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }
  bool wait_for_steps(const std::string& name, size_t bytes) const {
    return eventually([&] {
      std::error_code ignored;
      const auto size = fs::file_size(folder(name) + "/log.txt", ignored);
      return !ignored && size >= bytes;
    });
  }
  // As a shell shows it: 128 + signal for a process that one killed.
  static int exit_code_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  // Processes whose command line names this test's folder; the shell and pgrep do not.
  std::vector<pid_t> ranks_of(const std::string& name) const {
    std::vector<std::pair<int, pid_t>> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename().string();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string command = slurp(entry.path() / "cmdline");
      const std::string environment = slurp(entry.path() / "environ");
      const size_t rank = environment.find(std::string("\0RANK=", 6));
      if (command.find(folder(name)) == std::string::npos || rank == std::string::npos) continue;
      found.emplace_back(std::atoi(environment.c_str() + rank + 6), std::stoi(pid));
    }
    std::sort(found.begin(), found.end());
    std::vector<pid_t> out;
    for (const auto& [rank, pid] : found) out.push_back(pid);
    return out;
  }
  static std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  fs::path directory_;
};

}  // namespace ranklab
