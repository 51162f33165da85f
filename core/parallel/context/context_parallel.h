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

  int size() const { return comm == nullptr ? 1 : comm->size(); }
  int rank() const { return comm == nullptr ? 0 : comm->rank(); }
  bool active() const { return size() > 1; }
  // The positions of a rank, of sequences of which each rank has `own` positions.
  std::vector<PositionRun> part(int64_t own, int of_rank) const {
    return sequence_part(own * size(), size(), of_rank, split.balance);
  }
};

}  // namespace ranklab
