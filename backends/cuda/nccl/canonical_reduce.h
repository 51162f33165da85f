// Reductions on GPUs that are bit-identical to the CPU world's: every member gathers all inputs and adds them in the
// canonical tree of tree_reduce.h with elementwise kernels. Used to compare a GPU run with a simulated one. Cost:
// size() times the memory and (n-1) times the bytes of a ring's reduce_scatter. Thread rule: its rank's thread only.
#pragma once
#include "backends/cuda/nccl/nccl_comm.h"
#include "core/comm/call.h"

namespace ranklab {

// REQUIRES: call is an all_reduce or reduce_scatter; the communicator's stream is the current one.
void start_canonical_reduction(NcclComm& comm, const Group& group, const Call& call);

}  // namespace ranklab
