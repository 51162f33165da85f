// Peer memory among rank threads: each member's buffer of a round is one block of memory that all write into, each put
// into slots that an atomic counter gives it. finish() takes a seat in an exchange of its own for every owner, which
// only the owner waits for: so the watch sees who waits for whom, as in any call. Cost: one memcpy a put, an exchange
// of no bytes per owner and round. Thread rule: PeerBuffers any thread; the memory its rank's.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/comm/peer_memory.h"

namespace ranklab::cpu_sim {

class Run;

// What came into one member's buffer in one round.
class PeerBuffer {
 public:
  explicit PeerBuffer(int64_t capacity_bytes) : capacity_hint_(capacity_bytes) {}
  void put(const at::Tensor& rows, const PutNote& note);
  // REQUIRES: nobody puts any more.
  Delivery take();
  int64_t bytes() const { return next_.load(); }

 private:
  // Room for `bytes` and more, with what is there already.
  void grow(int64_t bytes);

  std::shared_mutex memory_mutex_;  // shared: writing rows; exclusive: moving to a larger block
  // Of no rank's allocator: one rank makes it, another one takes it.
  std::shared_ptr<uint8_t[]> memory_;
  int64_t capacity_ = 0;
  int64_t capacity_hint_;
  std::atomic<int64_t> next_{0};  // byte behind the last slot taken
  std::mutex notes_mutex_;
  std::vector<PutNote> notes_;
  int64_t width_ = 0;
};

// The buffers of all members of a group: shared by their threads.
class PeerBuffers {
 public:
  explicit PeerBuffers(int members) : owners_(static_cast<size_t>(members)) {}
  std::shared_ptr<PeerBuffer> buffer(int owner, int64_t round);  // made when new
  // The same, which nobody puts into any more. The next one is made as large at once.
  std::shared_ptr<PeerBuffer> remove(int owner, int64_t round);

 private:
  struct Owner {
    std::mutex mutex;
    std::map<int64_t, std::shared_ptr<PeerBuffer>> rounds;
    int64_t capacity_bytes = int64_t{1} << 16;  // of the next new one
  };
  std::vector<Owner> owners_;
};

PeerMemoryPtr make_peer_memory(std::shared_ptr<Run> run, const Group& group, const std::string& label,
                               std::shared_ptr<PeerBuffers> buffers);

}  // namespace ranklab::cpu_sim
