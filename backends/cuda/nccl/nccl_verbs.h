// Implements each collective Call as NCCL calls on the communicator's stream. Uneven reduce_scatter is a group of
// reduces, uneven all_gather a group of broadcasts, all_to_all a group of sends and receives. Over data-parallel axes,
// where gradients are summed, 16-bit tensors are sent and summed as fp32 (two casts on the same stream) and rounded
// once, as on cpu_sim. Over the axes of activations (tp, ep, etp, cp, pp) they keep their type: half the bytes on the
// critical path, but NCCL rounds each partial sum to 16 bits, so their last bits differ from cpu_sim's. Nothing here
// waits. Thread rule: its rank's thread only.
#pragma once
#include "backends/cuda/nccl/nccl_comm.h"
#include "core/comm/call.h"

namespace ranklab {

// REQUIRES: not a send or recv; the communicator's stream is the current one (casts run on it).
void start_collective(NcclComm& comm, const Group& group, const Call& call);
// A send or recv on a lane: a communicator of the sender (rank 0) and the receiver (rank 1).
void start_message(NcclComm& comm, const Call& call);

// Whether a reduction casts its 16-bit tensors to fp32 for communication.
bool travels_in_fp32(const Group& group, const Call& call);

// The bytes that this rank would send in a ring algorithm: an estimate, reported as wire bytes, since NCCL does not
// report them.
int64_t ring_bytes(const Group& group, const Call& call);

}  // namespace ranklab
