// Training runs of the program that save and load, in processes of their own that a test may end at any moment.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint_diff.h"
#include "core/checkpoint/run_folder.h"
#include "tests/cli/run_program.h"

namespace ranklab::checkpoint_runs {

using Words = std::vector<std::string>;

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Milliseconds a step, four ranks in two stages, in fp32.
inline const Words kTinyTraining = {"--ranks",
                                    "4",
                                    "--pp",
                                    "2",
                                    "--num-layers",
                                    "2",
                                    "--hidden-size",
                                    "16",
                                    "--ffn-hidden-size",
                                    "32",
                                    "--num-attention-heads",
                                    "2",
                                    "--seq-length",
                                    "16",
                                    "--global-batch-size",
                                    "8",
                                    "--mock-data",
                                    "--eval-interval",
                                    "0",
                                    "--sample-tokens",
                                    "0",
                                    "--no-trace",
                                    "--gemm",
                                    "mkl"};

class Child {
 public:
  // `ranklab COMMAND words...` with its output in a file.
  Child(const std::string& command, const Words& words, const std::string& output) {
    Words all = Words{RANKLAB_BINARY, command} + words;
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::ofstream(output, std::ios::trunc).close();
    std::fflush(nullptr);  // what waits in a buffer would be written by the child, too
    pid_ = ::fork();
    if (pid_ != 0) return;
    if (std::freopen(output.c_str(), "a", stdout) == nullptr || std::freopen(output.c_str(), "a", stderr) == nullptr)
      ::_exit(99);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  ~Child() {
    if (status_ < 0) finish(SIGKILL);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool ended() {
    if (status_ >= 0) return true;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_ >= 0;
  }
  // Its exit code, 128 + the signal that ended it. Sends `signal` before unless it is 0.
  int finish(int signal = 0) {
    if (!ended()) {
      if (signal != 0) ::kill(pid_, signal);
      ::waitpid(pid_, &status_, 0);
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t pid_ = -1;
  int status_ = -1;
};

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The loss of each step in metrics.jsonl, as bits. Steps that are repeated or out of order fail the test.
inline std::vector<uint64_t> loss_bits(const std::string& log_dir) {
  std::vector<uint64_t> bits;
  std::ifstream in(log_dir + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (!json.contains("loss")) continue;
    EXPECT_EQ(json["step"], bits.size()) << log_dir;
    bits.push_back(std::bit_cast<uint64_t>(json["loss"].get<double>()));
  }
  return bits;
}

// How many checkpoints a folder has; a damaged one among them fails the test.
inline size_t sound_checkpoints(const std::string& run_folder) {
  const std::vector<StepFolder> folders = step_folders(run_folder);
  for (const StepFolder& folder : folders) {
    try {
      Checkpoint(folder.path).verify();
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return folders.size();
}

}  // namespace ranklab::checkpoint_runs
