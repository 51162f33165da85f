// Executes a matched call on its members' tensors, as operations on tensors of any device, in the current stream.
// Thread rule: pure; any thread.
#pragma once
#include <vector>

#include "core/comm/call.h"

namespace ranklab::cpu_sim {

// `calls`: one per seat; for a message, the sender's and the receiver's. REQUIRES: they agree.
void transfer_tensors(const std::vector<Call>& calls);

}  // namespace ranklab::cpu_sim
