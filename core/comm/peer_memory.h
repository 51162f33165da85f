// Memory of each group member into which the others write without its involvement: symmetric memory, as provided by
// NVSHMEM's put with an atomic slot counter or by CUDA IPC inside a node; here between threads of one process. In a
// round, every member puts rows into any of the buffers, announces that it has finished, and takes what arrived in its
// own buffer. There is no rendezvous: a member waits only in take(), and only for the others' finish(). Rows of
// different senders are in order of arrival, which differs between runs: a caller that needs a fixed order must derive
// it from the rows. Some communicators offer peer memory (peer_memory_of), for others that function returns null. A
// member that fails or never finishes is reported as in a collective: nothing hangs. Thread rule: one object belongs to
// one rank's thread.
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
  // Times of the transfer on the virtual clocks; set by the observer.
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
  // Announces that this rank puts nothing more in this round. Does not wait.
  virtual void finish(std::source_location site = std::source_location::current()) = 0;
  // What arrived in this round; waits until every member has called finish(). Then the next round begins. REQUIRES:
  // finish() was called.
  virtual Delivery take() = 0;
};
using PeerMemoryPtr = std::shared_ptr<PeerMemory>;

// A communicator whose members can write into each other's memory.
class OffersPeerMemory {
 public:
  virtual ~OffersPeerMemory() = default;
  // Null if this world does not support it. Every member of the group calls it, in the same order as its other calls.
  virtual PeerMemoryPtr peer_memory() = 0;
};

inline PeerMemoryPtr peer_memory_of(Communicator& group) {
  auto* const offers = dynamic_cast<OffersPeerMemory*>(&group);
  return offers != nullptr ? offers->peer_memory() : nullptr;
}

}  // namespace ranklab
