// A module's tensor-parallel group and rank. With sequence parallelism activations between the sharded linears hold
// only this rank's S / tp positions (dim 0). Thread rule: its rank's thread.
#pragma once
#include "core/comm/communicator.h"
#include "core/parallel/token_context.h"

namespace ranklab {

struct TensorParallel {
  Communicator* comm = nullptr;  // REQUIRED; must outlive the modules
  bool sequence_parallel = false;
  bool overlaps = false;  // with sequence parallelism: collectives with the products before or after them

  int size() const { return comm->size(); }
  int rank() const { return comm->rank(); }
  bool active() const { return comm->size() > 1; }
  bool sharded_sequence() const { return sequence_parallel && active(); }
  // The settings for a forward over these tokens: decoding processes one position at a time, which cannot be sharded.
  // (Which gradients are summed over tp was decided when the parameters were created.)
  TensorParallel over(const TokenContext& tokens) const {
    return {comm, sequence_parallel && !tokens.whole_sequence, overlaps};
  }
};

}  // namespace ranklab
