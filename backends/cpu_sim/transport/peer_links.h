// The data connections of one rank's process: a link (data_link.h) to each other rank, and the one thread that reads
// them all and writes what their sockets did not accept at once. All Gloo groups use the same links, so a group costs
// no connection. Cost: one copy by the kernel in each direction. Thread rule: any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/cpu_sim/transport/data_link.h"
#include "backends/cpu_sim/transport/group_transport.h"
#include "backends/cpu_sim/transport/socket.h"

namespace ranklab::cpu_sim {

class PeerLinks : public std::enable_shared_from_this<PeerLinks> {
 public:
  explicit PeerLinks(std::map<int, Socket> by_rank);
  ~PeerLinks();

  // The context of a group whose members are these ranks of the world; `seat` is this process's index. `name` is the
  // same at every member, and unique to the group.
  std::shared_ptr<gloo::Context> context(std::string_view name, std::vector<int> ranks, int seat,
                                         std::chrono::milliseconds timeout);
  DataLink& to(int rank) { return *links_.at(rank); }
  // Permanently wakes every thread of this process that waits, with an error.
  void fail(const std::string& why);

 private:
  void loop();

  Socket epoll_;
  Socket wake_;
  std::map<int, std::unique_ptr<DataLink>> links_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace ranklab::cpu_sim
