// Detects that members of a group make different calls, which in NCCL leads to a hang or to garbage. The debug option
// check_calls compares every call with the other members' calls through the store, before it starts: verb, reduction,
// dtype, root, shape and rows; for an all_to_all, the rows of each pair. Cost: some round trips to the store per call
// and member. Thread rule: its rank's thread.
#pragma once
#include <string>

#include "backends/cuda/nccl/rendezvous.h"
#include "core/comm/call.h"

namespace ranklab {

inline bool is_message(const Call& call) { return call.verb == Verb::kSend || call.verb == Verb::kRecv; }

// Throws kCommunication naming both calls.
void compare_calls(Rendezvous& rendezvous, const Group& group, int serial, const Call& call, int64_t sequence);
// What must be equal, as text: verb, reduction, dtype, root, rows and the shape after the row dim.
std::string signature(const Call& call);

}  // namespace ranklab
