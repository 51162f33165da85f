// The members of one communicator of the stand-in for NCCL, all in this process. NCCL's rules, as far as a host sees
// them (2.28):
//   A launch is one kernel of all calls of a group. It begins when its stream reaches it and ends when each of its
// calls has met its counterparts in running kernels: the n-th collective of every member, and from one member to
// another the n-th send and the n-th receive. Calls that differ (other verb, count, type, root) never end; the real
// library hangs or leaves garbage. The first messages between two members connect them, and so does the first
// collective of a communicator: there the host waits inside the launch for the other members' hosts, and two members
// that connect at the same time must connect the same directions, else "Message truncated". An abort ends the kernels
// of its own member alone; the others go on waiting. Thread rule: any thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/stand_in/nccl_data.h"

namespace ranklab::stand_in {

struct Outcome {
  ncclResult_t code = ncclSuccess;
  std::string words;
};

class Clique {
 public:
  explicit Clique(int size) : members_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(members_.size()); }
  // Blocks until every member has come.
  Outcome join(int rank, int device);
  // The host's part of a launch. Blocks while it connects.
  Outcome prepare(int rank, const std::vector<Operation>& operations, bool in_graph = false);
  // The kernel: blocks the stream it runs on.
  void run(int rank, const std::vector<Operation>& operations, bool in_graph = false);
  // Blocks until every prepared launch of this member has run, but for those of graphs.
  void finish(int rank);
  void abort(int rank);

 private:
  using Direction = std::pair<int, int>;  // from, to

  struct Kernel {
    size_t unmet = 0;  // calls
  };
  struct Posted {
    const Operation* operation;
    Kernel* kernel;
  };
  struct Messages {
    std::deque<Posted> sends, receives;
  };
  struct Member {
    std::optional<int> device;
    bool aborted = false;
    int64_t launched = 0, ran = 0;
    int64_t collectives = 0;           // that its kernels began
    bool at_first_collective = false;  // its host is there, or was
    std::set<Direction> connecting;    // what its host waits for
    std::string failed_to_connect;
  };

  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  std::set<Direction> new_directions(int rank, const std::vector<Operation>& operations) const;
  void connect(int rank);
  void post(int rank, const Operation& operation, Kernel& kernel);
  void meet(Messages& messages);
  void meet(std::vector<Posted>& collective);
  void withdraw(const Kernel& kernel);
  bool all_at_first_collective() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::set<Direction> connected_;
  std::map<Direction, Messages> messages_;
  std::map<int64_t, std::vector<Posted>> collectives_;  // by number: the members' calls, by rank
};

}  // namespace ranklab::stand_in
