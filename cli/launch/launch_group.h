// The processes of one node's ranks: starts them, shows their output, forwards signals, and ensures that all of them
// end together. Each process leads its own process group, so that a Ctrl-C in the terminal reaches only the launcher,
// which forwards it exactly once; the kernel kills each of them if the launcher dies. Rank 0 writes to the terminal
// itself; lines of the others are marked "[rank N]". An error is shown once: errors of other ranks are held back, and
// dropped if rank 0 failed in the same way. Thread rule: one thread, with no others in the process (fork).
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch/launch_plan.h"

namespace ranklab {

struct GroupEnd {
  int exit_code = 0;
  bool failed = false;  // a rank failed
  int signal = 0;       // SIGINT or SIGTERM (also for SIGHUP), if the launcher or a rank of a training got one
  std::string story;    // how the first failed rank ended; empty if none failed
};

class LaunchGroup {
 public:
  // `listener`: descriptor that rank 0 inherits, or -1.
  LaunchGroup(const LaunchPlan& plan, int restart, int listener);
  ~LaunchGroup();  // kills and reaps the ranks that are left
  LaunchGroup(const LaunchGroup&) = delete;
  LaunchGroup& operator=(const LaunchGroup&) = delete;

  GroupEnd wait();

 private:
  using Clock = std::chrono::steady_clock;
  struct Stream {
    int from = -1;  // the pipe's reading end; -1: closed, or the rank writes to the terminal itself
    int to = 1;     // stdout (1) or stderr (2)
    int copy = -1;  // the file of --tee
    std::string partial;
  };
  struct Rank {
    int number = 0;  // global rank
    bool shown = true;
    int pid = -1;  // -1: the process has ended
    bool stopped = false;
    int exit_code = -1;
    Stream out, err;
  };

  void start(int local_rank, int restart, int listener);
  int open_stream(Rank& rank, Stream& stream, int local_rank, int kind);
  void poll_once();
  void read_signals();
  void reap();
  static void report_stopped(const Rank& rank, int signal);
  void end_all_by(int signal);
  bool is_asked_to_end(int status) const;
  bool keeps_first_end(bool killed, int code) const;
  void note_end(const Rank& rank, int pid, int status);
  void note_end_after_signal(bool killed, int code);
  void read(Rank& rank, Stream& stream);
  void copy(const Rank& rank, Stream& stream, std::string_view text);
  std::string copy_path(const Rank& rank, const Stream& stream) const;
  void show(const Rank& rank, int to, const std::string& line);
  void show_held_errors();
  void push_on();
  void push_on_after_signal(Clock::duration since);
  void kill_stopped();
  void kill_all();
  void send_all(int signal);
  bool has_running_ranks() const;

  const LaunchPlan& plan_;
  std::vector<Rank> ranks_;
  int signals_ = -1;
  GroupEnd end_;
  bool lost_a_peer_ = false;       // whether the failed rank of end_ only reported that it lost a peer
  int failed_while_stopping_ = 0;  // the exit code of a rank that had an error of its own after the signal
  std::optional<Clock::time_point> lost_since_;  // when, after the signal, a rank that others need ended
  std::optional<Clock::time_point> ending_since_;
  bool copy_is_lost_ = false;  // whether writing a file of --tee failed
  int pushed_ = 0;             // how far push_on() has gone: signalled, killed
  std::vector<std::pair<const Rank*, std::string>> held_errors_;
};

}  // namespace ranklab
