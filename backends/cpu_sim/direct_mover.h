// Reductions, gathers and all-to-all inside one process without staging copies: a call is cut into pieces, which the
// waiting threads execute. A reduction piece reads its elements from all n inputs, adds them in tree order
// (tree_reduce.h) in a few KiB of stack, and writes all n outputs; in-place calls are safe because only one thread
// touches a piece's elements. Cost: all_reduce reads n S and writes n S bytes in total, with no scratch; small calls
// are done by the last poster with one wake-up for all; there is no communication thread, so an async call is moved by
// the first waiter. Thread rule: stateless, shared by all ranks.
#pragma once
#include "backends/cpu_sim/mover.h"

namespace ranklab::cpu_sim {

class DirectMover final : public Mover {
 public:
  static bool moves(Verb verb);  // all other verbs are left to Gloo (thread_mover.h)
  void matched(Exchange& exchange) override;
  void complete(Exchange& exchange, int seat) override;
  bool poll(Exchange& exchange, int seat) override;
  int64_t wire_bytes(const Exchange& exchange, int seat) const override;
  bool needs_thread(const Call&) const override { return false; }
};

// Bytes of this seat's tensors that other members read.
int64_t read_by_peers(const Exchange& exchange, int seat);

}  // namespace ranklab::cpu_sim
