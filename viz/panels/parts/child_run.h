// A child process that the window starts and polls each frame: posix_spawn, both output streams in a file, waitpid
// without waiting. It stays in the window's process group, so that Ctrl-C in the terminal ends both; if the window is
// killed, the child continues. Source: POSIX.1-2017, posix_spawn. Cost: a system call per poll(). Thread rule: one
// thread.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace ranklab::viz {

enum class ChildState { kRunning, kSucceeded, kFailed, kCancelled };

class ChildRun {
 public:
  // Throws kEnvironment if the process cannot be started. `output_path` is overwritten.
  ChildRun(const std::string& program, const std::vector<std::string>& arguments, std::string output_path);
  // Ends the process as cancel() does and waits two seconds, then sends SIGKILL.
  ~ChildRun();
  ChildRun(const ChildRun&) = delete;
  ChildRun& operator=(const ChildRun&) = delete;

  ChildState poll();  // never waits
  ChildState state() const { return state_; }
  // Sends SIGTERM. The state becomes kCancelled when the child has exited, whatever its exit code is.
  void cancel();
  bool cancel_requested() const { return cancel_requested_; }
  double seconds() const;         // since the start; constant once it has ended
  std::string end_text() const;   // "exit code 2", "signal 9 (Killed)"; "" while it runs
  std::string last_line() const;  // last non-blank line of its output so far

 private:
  using Clock = std::chrono::steady_clock;

  pid_t pid_ = -1;
  int status_ = 0;  // from waitpid
  bool status_known_ = false;
  ChildState state_ = ChildState::kRunning;
  bool cancel_requested_ = false;
  std::string output_path_;
  Clock::time_point begin_ = Clock::now(), end_;
};

}  // namespace ranklab::viz
