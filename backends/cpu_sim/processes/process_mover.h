// Moves the bytes of matched calls between processes: collectives with Gloo's algorithms over the group's own
// connections (GlooMover), messages over one mesh of connections between all ranks, which exists from the start so that
// a message involves only its two ends. Both ends identify a message by the serial number of its match. When a
// connection breaks, the coordinator usually knows why: the rank waits for its verdict and throws that. Thread rule:
// matched() on the control thread; complete() and poll() on the rank's.
#pragma once
#include <memory>

#include "backends/cpu_sim/gloo_group.h"
#include "backends/cpu_sim/gloo_mover.h"
#include "backends/cpu_sim/mover.h"
#include "backends/cpu_sim/processes/control.h"

namespace ranklab::cpu_sim {

class ProcessMover final : public Mover {
 public:
  ProcessMover(Control& control, std::shared_ptr<GlooGroup> group, std::shared_ptr<GlooGroup> mesh)
      : control_(control), mesh_(std::move(mesh)), collectives_(std::move(group)) {}
  void matched(Exchange& exchange) override;
  void complete(Exchange& exchange, int seat) override;
  bool poll(Exchange& exchange, int seat) override { return collectives_.poll(exchange, seat); }
  int64_t wire_bytes(const Exchange& exchange, int seat) const override {
    return collectives_.wire_bytes(exchange, seat);
  }
  bool needs_thread(const Call& call) const override { return collectives_.needs_thread(call); }

 private:
  [[noreturn]] void fail(const Exchange& exchange, int seat, const std::exception& error);

  Control& control_;
  std::shared_ptr<GlooGroup> mesh_;
  GlooMover collectives_;
};

}  // namespace ranklab::cpu_sim
