// Collectives between rank threads that share one device: no data moves through the host, and no rank's host thread
// waits for a peer's kernels. Each member records an event in its queue (stream) when it posts; the last poster
// enqueues the whole call in its transfer queue, after all members' events; a member's wait() makes its queue wait for
// the call. A call is enqueued only when all members have posted, so no kernel ever waits for one that is not yet
// enqueued. Reductions add in the canonical order, bit-identical to the host's. Cost: n - 1 additions and n - 1 copies
// for an all_reduce of n, one kernel per member for a gather or all_to_all. Lifetimes: a member's tensors belong to its
// own queue, which waits for the call before they are freed; tensors of a member that never waits are kept. Thread
// rule: shared by all ranks.
#pragma once
#include <memory>

#include "backends/cpu_sim/mover.h"
#include "core/comm/device_queues.h"

namespace ranklab::cpu_sim {

class DeviceMover final : public Mover {
 public:
  explicit DeviceMover(std::shared_ptr<DeviceQueues> queues) : queues_(std::move(queues)) {}
  QueueMarkPtr posting(const Call& call) override;
  void matched(Exchange& exchange) override;
  void complete(Exchange& exchange, int seat) override;
  bool poll(Exchange& exchange, int seat) override;
  void abandoned(Exchange& exchange, int seat) override;
  int64_t wire_bytes(const Exchange& exchange, int seat) const override;
  bool needs_thread(const Call&) const override { return false; }

 private:
  std::shared_ptr<DeviceQueues> queues_;
};

}  // namespace ranklab::cpu_sim
