// One run as the coordinator sees it: the match table and the watch of a thread world, fed with the messages of the
// ranks' processes. So a mismatch, a deadlock, a missing call and a hung rank are detected at once, as between threads,
// with the same messages, and the virtual times are the same. Cost: two frames and about a microsecond of table
// look-ups per call. Thread rule: the coordinator's thread.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu_sim/match_table.h"
#include "backends/cpu_sim/mover.h"
#include "backends/cpu_sim/processes/wire.h"
#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/watch.h"

namespace ranklab::cpu_sim {

class Switchboard {
 public:
  using Send = std::function<void(int rank, FrameType type, const std::string& payload)>;
  // `files` and `serial` live as long as the world, which has several runs in sequence.
  Switchboard(int world_size, std::chrono::milliseconds hang_timeout, bool same_call_site, Send send,
              SourceFiles& files, int64_t& serial);

  // Handles a frame from this rank. An error in the call, or in the frame, fails the run.
  void handle(int rank, const Frame& frame);
  void lost(int rank, ErrorKind kind, const std::string& what, const std::string& got, const std::string& fix) {
    watch_.process_lost(rank, kind, what, got, fix);
  }
  void fail(const Error& error);  // when no single rank is at fault
  void check_hang(int64_t now_ns) { watch_.check_hang(now_ns); }

  bool all_returned() const { return returned_ == static_cast<int>(members_.size()); }
  // After all bodies returned: throws if some member never made a call.
  void check_nothing_open() { table_.check_nothing_open(); }
  std::optional<Error> first_error() { return watch_.first_error(); }
  Error abort_error(int rank) { return watch_.abort_error(rank); }

 private:
  struct Member {
    std::vector<Channel*> channels;                             // indexed by the number that the member gave
    std::map<const ChannelInfo*, int64_t> numbers;              // the reverse mapping
    std::map<std::pair<int64_t, int64_t>, ExchangePtr> posted;  // (number, sequence), until reported as finished
    bool returned = false;
  };
  class Announcer;

  void open_channel(int rank, Unpacker& in);
  void post(int rank, Unpacker& in);
  void announce(const Exchange& exchange);
  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }

  Send send_;
  SourceFiles& files_;
  int64_t& serial_;
  Watch watch_;
  MatchTable table_;
  std::vector<Member> members_;
  int returned_ = 0;
};

}  // namespace ranklab::cpu_sim
