// Moves the bytes of matched calls between rank threads: messages, broadcasts and barriers with Gloo over the group's
// transport; reductions and regrouping collectives in place in the peers' memory (direct_mover.h), which resembles a
// GPU's ring or tree over NVLink more than messages do, and is 4 to 40 times faster (ranklab bench collectives). Thread
// rule: as Mover.
#pragma once
#include <memory>
#include <utility>

#include "backends/cpu_sim/direct_mover.h"
#include "backends/cpu_sim/gloo_mover.h"
#include "backends/cpu_sim/mover.h"

namespace ranklab::cpu_sim {

class ThreadMover final : public Mover {
 public:
  explicit ThreadMover(std::shared_ptr<GlooGroup> group) : gloo_(std::move(group)) {}
  void matched(Exchange& exchange) override { of(exchange).matched(exchange); }
  void complete(Exchange& exchange, int seat) override { of(exchange).complete(exchange, seat); }
  bool poll(Exchange& exchange, int seat) override { return of(exchange).poll(exchange, seat); }
  int64_t wire_bytes(const Exchange& exchange, int seat) const override {
    return of(exchange).wire_bytes(exchange, seat);
  }
  bool needs_thread(const Call& call) const override {
    return !DirectMover::moves(call.verb) && gloo_.needs_thread(call);
  }

 private:
  Mover& of(const Exchange& exchange) const {
    if (DirectMover::moves(exchange.seats[0].call.verb)) return direct_;
    return gloo_;
  }
  mutable DirectMover direct_;
  mutable GlooMover gloo_;
};

}  // namespace ranklab::cpu_sim
