// Starts the ranks of a process world as real processes and watches how each ends.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu_sim/transport/socket.h"
#include "tests/eventually.h"
#include "tests/fair_clock.h"

namespace ranklab::cpu_sim_test {

struct Ended {
  int exit_code = -1;  // 128 + signal where one killed it
  double seconds = 0;  // since the clock was started, as fair_clock.h counts them
  std::string output;
};

class Processes {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::string mode;
    int size = 3;
    int join_ms = 60'000;
    int hang_ms = 60'000;
    std::string token = "0123456789abcdef";
  };

  explicit Processes(Options options) : options_(std::move(options)), listener_(cpu_sim::listen_on("127.0.0.1", 0)) {}
  ~Processes() {
    for (const auto& [pid, rank] : running_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    for (const std::string& path : files_) ::unlink(path.c_str());
  }

  int port() const { return cpu_sim::port_of(listener_); }
  const cpu_sim::Socket& listener() const { return listener_; }  // rank 0's, when it is started
  void start_all() {
    for (int rank = 0; rank < options_.size; ++rank) start(rank);
  }
  // RETURNS: the process id.
  int start(int rank) { return start(rank, options_.size, options_.token); }
  int start(int rank, int world_size, const std::string& token) {
    return start(rank, world_size, token, options_.join_ms);
  }
  int start(int rank, int world_size, const std::string& token, int join_ms) {
    const std::string path = ::testing::TempDir() + "ranklab_rank_" + std::to_string(::getpid()) + "_" +
                             std::to_string(files_.size()) + ".txt";
    files_.push_back(path);
    const int pid = ::fork();
    if (pid == 0) become(rank, world_size, token, join_ms, path);
    running_[pid] = files_.size() - 1;
    ended_.emplace_back();
    return pid;
  }
  // Until rank 0 has said "ready".
  bool wait_ready() {
    return eventually([&] { return read(files_[0]).find("ready") != std::string::npos; });
  }
  void start_clock() { clock_.emplace(); }

  // Until at most `left` processes run. Those that stay longer than the limit are killed, and show as 128 + 9.
  void wait_until(size_t left, std::chrono::milliseconds limit = std::chrono::minutes(10)) {
    const Clock::time_point end = Clock::now() + limit;
    while (running_.size() > left) {
      if (Clock::now() > end)
        for (const auto& [pid, index] : running_) ::kill(pid, SIGKILL);
      for (auto it = running_.begin(); it != running_.end();) {
        int status = 0;
        const bool over = ::waitpid(it->first, &status, WNOHANG) == it->first;
        if (over) {
          Ended& ended = ended_[it->second];
          ended.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
          ended.seconds = clock_ ? clock_->seconds() : 0;
        }
        it = over ? running_.erase(it) : std::next(it);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // All of them, in the order in which they were started.
  std::vector<Ended> wait() {
    wait_until(0);
    for (size_t i = 0; i < files_.size(); ++i) ended_[i].output = read(files_[i]);
    return ended_;
  }

 private:
  [[noreturn]] void become(int rank, int world_size, const std::string& token, int join_ms, const std::string& path) {
    const int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::fcntl(listener_.get(), F_SETFD, 0);
    const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
    set("RANK", std::to_string(rank));
    set("LOCAL_RANK", std::to_string(rank));
    set("WORLD_SIZE", std::to_string(world_size));
    set("LOCAL_WORLD_SIZE", std::to_string(world_size));
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", std::to_string(port()));
    ::execl(RANKLAB_RANK_PROGRAM, RANKLAB_RANK_PROGRAM, options_.mode.c_str(), std::to_string(listener_.get()).c_str(),
            std::to_string(join_ms).c_str(), std::to_string(options_.hang_ms).c_str(), token.c_str(), nullptr);
    ::_exit(127);
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  Options options_;
  cpu_sim::Socket listener_;
  std::optional<FairClock> clock_;
  std::map<int, size_t> running_;  // pid -> index
  std::vector<Ended> ended_;
  std::vector<std::string> files_;
};

}  // namespace ranklab::cpu_sim_test
