// Where a module stands on the tensor-parallel axis. With sequence parallelism activations between the sharded linears
// hold only this rank's S / tp positions (dim 0). Thread rule: its rank's thread.
#pragma once
#include "core/comm/communicator.h"

namespace ranklab {

// While it lives, sequence parallelism is off on this thread: decoding runs one position at a time, which cannot be
// shared out. Forward only: which gradients are summed over tp was settled when the parameters were made.
class WholeSequenceScope {
 public:
  WholeSequenceScope();
  ~WholeSequenceScope();
  WholeSequenceScope(const WholeSequenceScope&) = delete;
  WholeSequenceScope& operator=(const WholeSequenceScope&) = delete;

 private:
  bool previous_;
};
bool sequences_are_whole();

struct TensorParallel {
  Communicator* comm = nullptr;  // REQUIRED; outlives the modules
  bool sequence_parallel = false;

  int size() const { return comm->size(); }
  int rank() const { return comm->rank(); }
  bool active() const { return comm->size() > 1; }
  bool sharded_sequence() const { return sequence_parallel && active() && !sequences_are_whole(); }
};

}  // namespace ranklab
