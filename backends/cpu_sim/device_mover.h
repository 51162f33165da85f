// Collectives between rank threads that share one device: nothing moves through the host, and no rank waits on the host
// for a peer's kernels. Each member marks its queue when it posts; whoever posts last orders the whole call in its
// queue of transfers, behind all members' marks; each member's queue goes on behind the call when the member waits for
// it. A call is ordered only when all members are there, so no kernel ever waits for one that is yet to come.
// Reductions add in the canonical order, with the bits of the host's. Cost: n - 1 additions and n - 1 copies for an
// all_reduce of n, one kernel a member for a gather or all_to_all. Lifetimes: a member's tensors belong to its own
// queue, and it goes on behind the call before it frees them; a member that never waits has its tensors kept. Thread
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
