// Memory of each group member that the others write into without its help: symmetric memory, as NVSHMEM's put with an
// atomic slot counter, or CUDA IPC inside a node, provide it; here threads of one process. In a round every member puts
// rows into any of the buffers, announces that it has finished, and takes what arrived in its own. There is no
// rendezvous: a member waits only in take(), and only for the others' finish(). Rows of different senders lie in order
// of arrival, which differs from run to run: a caller that needs an order must derive it from the rows.
// Some communicators offer it (peer_memory_of); others return null. A member that fails or never finishes is reported
// as in a collective: nothing hangs. Thread rule: one object belongs to one rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

// The record of one put() in the buffer that it wrote into.
struct PutNote {
  int source = -1;     // group rank
  int64_t number = 0;  // index of the put between these two ranks
  int64_t bytes = 0;
  int64_t wall_ns = 0;  // when it was posted
  // Times of the transfer on the virtual clocks; the observer writes them.
  int64_t virtual_posted_ns = 0, virtual_begin_ns = 0, virtual_end_ns = 0;
};

struct Delivery {
  at::Tensor rows;  // uint8 [N, W], in order of arrival; [0, 0] when none came
  std::vector<PutNote> notes;
};

class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  virtual const Group& group() const = 0;
  // Copies rows [n, W] (uint8, contiguous; the same W for all puts of a round) into slots of the peer's buffer that
  // this call reserves. `note.bytes` and `.source` are filled in.
  virtual void put(int peer, const at::Tensor& rows, PutNote note = {}) = 0;
  // This rank puts nothing more in this round. Does not wait.
  virtual void finish(std::source_location site = std::source_location::current()) = 0;
  // What arrived in this round; waits until every member has finished it. Then the next round begins.
  // REQUIRES: finish() was called.
  virtual Delivery take() = 0;
};
using PeerMemoryPtr = std::shared_ptr<PeerMemory>;

// A communicator whose members can write into each other's memory.
class OffersPeerMemory {
 public:
  virtual ~OffersPeerMemory() = default;
  // Null when this world does not support it. Every member of the group calls it, in the same order as its other calls.
  virtual PeerMemoryPtr peer_memory() = 0;
};

inline PeerMemoryPtr peer_memory_of(Communicator& group) {
  auto* const offers = dynamic_cast<OffersPeerMemory*>(&group);
  return offers != nullptr ? offers->peer_memory() : nullptr;
}

}  // namespace ranklab
