// Moves the bytes of a matched exchange. Thread rule: matched() is called once, by the last poster, before the exchange
// shows as matched; complete() and poll() by each member, on its own thread.
#pragma once
#include "backends/cpu_sim/exchange.h"

namespace ranklab::cpu_sim {

class Mover {
 public:
  virtual ~Mover() = default;
  // Called by each member on its own thread, before it takes its seat. RETURNS: the work that must be complete before
  // the call's tensors may be touched.
  virtual QueueMarkPtr posting(const Call& /*call*/) { return nullptr; }
  virtual void matched(Exchange& exchange) = 0;
  // Returns when the seat's output is valid and its input may be reused. REQUIRES: matched.
  virtual void complete(Exchange& exchange, int seat) = 0;
  // The same without waiting for other members; false if there is more to do. REQUIRES: matched.
  virtual bool poll(Exchange& exchange, int seat) = 0;
  // The member will not wait for its part.
  virtual void abandoned(Exchange& /*exchange*/, int /*seat*/) {}
  // Bytes sent from the seat's rank.
  virtual int64_t wire_bytes(const Exchange& exchange, int seat) const = 0;
  // True when a member's part needs a thread of its own unless the member itself waits at once.
  virtual bool needs_thread(const Call& call) const = 0;
};

}  // namespace ranklab::cpu_sim
