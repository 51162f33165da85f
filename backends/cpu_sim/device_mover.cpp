#include "backends/cpu_sim/device_mover.h"

#include <atomic>
#include <vector>

#include "backends/cpu_sim/device_transfer.h"
#include "backends/cpu_sim/direct_mover.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

const QueueMark& done(const Exchange& exchange) { return *static_cast<const QueueMark*>(exchange.baggage.get()); }

}  // namespace

QueueMarkPtr DeviceMover::posting(const Call&) { return queues_->mark(); }

void DeviceMover::matched(Exchange& exchange) {
  std::vector<QueueMarkPtr> ready;
  const auto calls = std::make_shared<std::vector<Call>>();
  for (const Seat& seat : exchange.seats) {
    ready.push_back(seat.ready);
    calls->push_back(seat.call);
  }
  {
    const NoCostScope no_cost;
    const UnbookedScope unbooked;  // the scratch memory belongs to no rank
    exchange.baggage = queues_->transfer(ready, [calls] { transfer_tensors(*calls); });
  }
  exchange.done_wall_ns = wall_now_ns();
  exchange.tell(Phase::kDone);
  // Either this thread sees that a member left, or the member sees that the call is enqueued: all four accesses are
  // sequentially consistent.
  if (!exchange.abandoned.load(std::memory_order_seq_cst)) return;
  for (const Call& call : *calls) {
    if (call.input.defined()) queues_->keep(call.input);
    if (call.output.defined()) queues_->keep(call.output);
  }
}

void DeviceMover::complete(Exchange& exchange, int /*seat*/) { queues_->wait(done(exchange)); }

// The host has nothing to wait for once the call is enqueued.
bool DeviceMover::poll(Exchange& exchange, int /*seat*/) { return exchange.current() == Phase::kDone; }

void DeviceMover::abandoned(Exchange& exchange, int /*seat*/) {
  exchange.abandoned.store(true, std::memory_order_seq_cst);
  if (exchange.phase.load(std::memory_order_seq_cst) != static_cast<uint32_t>(Phase::kDone)) return;
  try {
    queues_->wait(done(exchange));
  } catch (...) {  // called by a destructor; whoever waits receives the error
  }
}

int64_t DeviceMover::wire_bytes(const Exchange& exchange, int seat) const { return read_by_peers(exchange, seat); }

}  // namespace ranklab::cpu_sim
