// Memory of each member of a group that the others write into without its help: symmetric memory, as NVSHMEM's put
// with an atomic slot, or CUDA IPC inside a node, give it; here threads of one process. A round is: everybody puts rows
// into whatever buffers, says that it has finished, and takes what came into its own. Nobody meets anybody: a member
// waits only in take(), and only for the others' finish(). Rows of different senders lie in order of arrival, which
// differs from run to run: who needs an order must find it in the rows.
// Some communicators offer it (peer_memory_of); others answer null. A member that fails or never finishes is reported
// as in a collective: nothing hangs. Thread rule: one object belongs to one rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

// What stands in a buffer of its owner from one put().
struct PutNote {
  int source = -1;     // group rank
  int64_t number = 0;  // of the put between these two ranks
  int64_t bytes = 0;
  int64_t wall_ns = 0;  // when it was posted
  // When the rows have arrived, by the virtual clocks; the observer writes them.
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
  // this call takes itself. `note.bytes` and `.source` are filled in.
  virtual void put(int peer, const at::Tensor& rows, PutNote note = {}) = 0;
  // This rank puts nothing more in this round. Does not wait.
  virtual void finish(std::source_location site = std::source_location::current()) = 0;
  // What came in this round; waits until every member has finished it. Then the next round begins.
  // REQUIRES: finish() was called.
  virtual Delivery take() = 0;
};
using PeerMemoryPtr = std::shared_ptr<PeerMemory>;

// A communicator whose members can write into each other's memory.
class OffersPeerMemory {
 public:
  virtual ~OffersPeerMemory() = default;
  // Null when this world cannot after all. Every member of the group asks, in the same order as for other calls.
  virtual PeerMemoryPtr peer_memory() = 0;
};

inline PeerMemoryPtr peer_memory_of(Communicator& group) {
  auto* const offers = dynamic_cast<OffersPeerMemory*>(&group);
  return offers != nullptr ? offers->peer_memory() : nullptr;
}

}  // namespace ranklab
