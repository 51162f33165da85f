// Interleaves two pieces of a rank's work on its thread: each runs until it has posted a dispatch or combine transfer
// of tokens, then the other continues while the transfer is in flight (the computation-communication overlap of a pair
// of microbatches in DualPipe, arXiv 2412.19437, section 3.2.1; Megatron-Core's --overlap-moe-expert-parallel-comm).
// All ranks that run the same pieces switch at the same points, and the order within a piece is unchanged, so the
// results equal those of running one after the other, bit for bit. At most one of the two may be a backward pass.
// On a GPU both use the rank's stream, on which a transfer is awaited only when its piece continues.
// Thread rule: the rank's thread, which must also run the backward (AutogradState without multithreading).
#pragma once
#include <functional>

#include "core/comm/communicator.h"

namespace ranklab {

struct InterleaveHooks {
  std::function<void(int piece)> resumed, suspended;
};

// Runs both to completion, starting with the first. If one throws, the other is stopped at its next switch; rethrows.
void interleave(const std::function<void()>& first, const std::function<void()>& second, const InterleaveHooks& hooks);

// Sees when the piece in which it was set stops and continues. Each piece has its own.
class TurnWatch {
 public:
  virtual ~TurnWatch() = default;
  virtual void suspended() = 0;
  virtual void resumed() = 0;
};
// Sets the watch of the piece that runs, or of this thread if none does; RETURNS: the previous one. Null: none.
TurnWatch* exchange_turn_watch(TurnWatch* watch);

// Whether this thread is running interleaved pieces; if so, transfers should be posted asynchronously and awaited with
// await_in_turns().
bool is_interleaved();
// Lets the other piece run, until it does the same or ends. Returns at once where pieces are not interleaved.
void take_turns();
// Switches to the other piece, then waits for the transfer.
at::Tensor await_in_turns(const WorkPtr& work);

}  // namespace ranklab
