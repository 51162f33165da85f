// The group of ranks that hold parts of the same sequences, and how their attention exchanges what it needs
// (Megatron-LM's words of --cp-comm-type). Everything but attention works on each position alone. Thread rule: its
// rank's thread.
#pragma once
#include <vector>

#include "core/comm/communicator.h"
#include "core/spec/context_exchange.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

struct ContextParallel {
  Communicator* comm = nullptr;  // null: every rank has whole sequences; must outlive the modules
  ContextSplit split = {};
  // For kAllToAllP2p, else null: the neighbours on comm that exchange heads, and the ring of those groups.
  Communicator* heads = nullptr;
  Communicator* ring = nullptr;
  int joined = 1;  // a member of comm stands for so many ranks, whose parts of a sequence it has together

  int size() const { return comm == nullptr ? 1 : comm->size(); }
  int rank() const { return comm == nullptr ? 0 : comm->rank(); }
  bool active() const { return size() > 1; }
  // The same for one layer.
  ContextParallel of_layer(int64_t layer) const;
  // The positions of a rank, of sequences of which each rank has `own` positions.
  std::vector<PositionRun> part(int64_t own, int of_rank) const;

  // An exchange in two steps: the ranks that exchange heads for positions (none for kP2p, kAllGather), and then those
  // that exchange keys and values (none for kAllToAll).
  ContextParallel head_group() const;
  ContextParallel key_group() const;
  // kAllToAllP2p: the ring goes round with the positions that neighbours have together.
  ContextParallel ring_of_neighbours() const;
};

}  // namespace ranklab
