// A rank's communicator in a thread world: posts calls to the match table and lets the mover move the bytes. Thread
// rule: its rank's thread only.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu_sim/comm_thread.h"
#include "backends/cpu_sim/match_table.h"
#include "backends/cpu_sim/mover.h"
#include "core/comm/communicator.h"

namespace ranklab::cpu_sim {

// What all ranks of one World::run share; kept alive by every communicator and work.
struct Run {
  Run(int size, std::chrono::milliseconds hang_timeout, bool same_call_site)
      : watch(size, hang_timeout), table(watch, same_call_site) {}
  ~Run() { join_comm_threads(); }
  // A communicator may go while its thread still works off calls that peers have yet to make.
  void retire(std::unique_ptr<CommThread> thread);
  // REQUIRES: nothing is open any more (all matched, or aborted).
  void join_comm_threads();

  Watch watch;
  MatchTable table;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CommThread>> retired_;
};

// `label` is unique in the run and the same on every member.
CommunicatorPtr make_thread_communicator(std::shared_ptr<Run> run, Group group, std::string label,
                                         std::shared_ptr<Mover> mover);

}  // namespace ranklab::cpu_sim
