// The state that the ranks of this process share during one World::run: where calls are posted and matched with those
// of other ranks. Ranks that are threads share the match table itself (thread_world.cpp); a rank that is a process uses
// the coordinator in rank 0's process (process_run.h). Kept alive by every communicator and work. Thread rule: any
// thread; a rank's calls come from its own.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cpu_sim/comm_thread.h"
#include "backends/cpu_sim/exchange.h"
#include "backends/cpu_sim/match_table.h"
#include "backends/cpu_sim/mover.h"
#include "backends/cpu_sim/peer_buffers.h"
#include "core/base/error.h"
#include "core/comm/world.h"

namespace ranklab::cpu_sim {

class Run {
 public:
  virtual ~Run() = default;

  // The channel with that label, created on first use. REQUIRES: same info from every member.
  virtual Channel& channel(const ChannelInfo& info) = 0;
  // Takes the rank's seat in the channel's next exchange; never waits for a peer. Throws a mismatch, or abort_error().
  virtual ExchangePtr post(Channel& channel, int seat, Call call, Mover& mover) = 0;
  // The rank is about to sleep until the exchange is matched; may throw a deadlock.
  virtual void block(int rank, const ExchangePtr& exchange) = 0;
  virtual void finished_call(int rank, const Exchange& exchange, int seat, int64_t now_ns) = 0;
  // The error that this rank has to throw after the world failed.
  virtual Error abort_error(int rank) = 0;
  virtual void body_returned(int rank) = 0;
  virtual void body_failed(int rank, const Error& error) = 0;
  // The mover for a group's calls; the same for all members. `label` names the communicator.
  virtual std::shared_ptr<Mover> mover(const std::string& label, const Group& group) = 0;
  // The device of the ranks' tensors.
  virtual c10::Device device() const { return c10::DeviceType::CPU; }
  // Null if kernels run on the ranks' own threads.
  virtual DeviceQueues* device_queues() { return nullptr; }
  // Memory that the members of a group write into directly; null if the ranks share no memory.
  virtual std::shared_ptr<PeerBuffers> peer_buffers(const std::string& /*label*/, int /*members*/) { return nullptr; }

  // Takes over the thread of a destroyed communicator, which may still have to complete calls that peers have yet to
  // make.
  void retire(std::unique_ptr<CommThread> thread);
  // REQUIRES: no call is open (all matched, or aborted). Call it in the destructor of a derived class.
  void join_comm_threads();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CommThread>> retired_;
};

// Runs `body` as that rank on the calling thread: names the thread, limits ATen to one core, reports the outcome to the
// run.
void run_rank_body(const std::shared_ptr<Run>& run, int rank, int world_size,
                   const std::function<void(Endpoint&)>& body);

// Prints the error and ends the process at once with its exit code: for a rank that cannot be joined.
[[noreturn]] void leave(const Error& error, bool silently = false);

}  // namespace ranklab::cpu_sim
