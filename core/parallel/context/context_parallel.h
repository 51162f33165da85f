// The group of ranks that hold parts of the same sequences, and how their attention exchanges what it needs (the names
// are those of Megatron-LM's --cp-comm-type). Everything except attention works on each position separately. Thread
// rule: its rank's thread.
#pragma once
#include <vector>

#include "core/comm/communicator.h"
#include "core/spec/context_exchange.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

struct ContextParallel {
  Communicator* comm = nullptr;  // null: every rank has whole sequences; must outlive the modules
  ContextSplit split = {};
  // For kAllToAllP2p, else null: the neighbours in `comm` that exchange heads, and the ring formed by those groups.
  Communicator* heads = nullptr;
  Communicator* ring = nullptr;
  int joined = 1;  // the number of ranks whose parts of a sequence one member of comm holds together

  int size() const { return comm == nullptr ? 1 : comm->size(); }
  int rank() const { return comm == nullptr ? 0 : comm->rank(); }
  bool active() const { return size() > 1; }
  // The same for one layer.
  ContextParallel of_layer(int64_t layer) const;
  // The positions of a rank, for sequences of which every rank has `own` positions.
  std::vector<PositionRun> part(int64_t own, int of_rank) const;

  // An exchange in two steps: first the ranks that exchange heads for positions (none for kP2p and kAllGather), then
  // the ranks that exchange keys and values (none for kAllToAll).
  ContextParallel head_group() const;
  ContextParallel key_group() const;
  // kAllToAllP2p: the ring passes on the positions that a group of neighbours holds together.
  ContextParallel ring_of_neighbours() const;
};

}  // namespace ranklab
