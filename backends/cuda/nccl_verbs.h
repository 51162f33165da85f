// Each collective Call as NCCL calls on the communicator's stream. Uneven reduce_scatter is a group of reduces, uneven
// all_gather a group of broadcasts, all_to_all a group of sends and receives. 16-bit reductions are done in fp32 when
// the call asks for it (two casts on the same stream). Nothing here waits. Thread rule: its rank's thread only.
#pragma once
#include <vector>

#include "backends/cuda/nccl_comm.h"
#include "core/comm/call.h"

namespace ranklab {

// REQUIRES: not a send or recv; the communicator's stream is the current one (casts run on it).
void start_collective(NcclComm& comm, const Group& group, const Call& call);
// Messages, sends and receives together, so that their order between them cannot block.
void start_messages(NcclComm& comm, const std::vector<Call>& calls);

// What this rank sends under a ring, as NCCL does not tell: the estimate reported as wire bytes.
int64_t ring_bytes(const Group& group, const Call& call);

}  // namespace ranklab
