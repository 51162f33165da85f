// Two pieces of one rank's work in turns on its thread: each runs until it has posted a transfer of tokens to or from
// their experts, then the other goes on while the bytes travel (the computation-communication overlap of a pair of
// microbatches in DualPipe, arXiv 2412.19437, section 3.2.1; Megatron-Core's --overlap-moe-expert-parallel-comm). The
// turns are the same on all ranks that run the same pieces, and nothing is computed in another order within a piece, so
// the numbers are those of one after the other, bit for bit. At most one of the two may be a backward pass.
// Thread rule: the rank's thread; on GPUs the backward runs on threads of autograd's own, where there is nothing to
// yield to.
#pragma once
#include <functional>

#include "core/comm/communicator.h"

namespace ranklab {

struct InterleaveHooks {
  std::function<void(int piece)> resumed, suspended;
};

// Runs both to their end, the first one first. When one throws, the other is stopped at its next turn; rethrows.
void interleave(const std::function<void()>& first, const std::function<void()>& second, const InterleaveHooks& hooks);

// Whether this thread runs one of two pieces; then a transfer is better posted and awaited than waited for.
bool is_interleaved();
// Lets the other piece run, then waits for the transfer.
at::Tensor await_in_turns(const WorkPtr& work);

}  // namespace ranklab
