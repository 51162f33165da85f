// Peer memory among rank threads: each member's buffer of a round is one block of memory into which all members write,
// each at slots allocated by an atomic counter. finish() takes a seat in one exchange per owner, for which only the
// owner waits, so the watch sees who waits for whom, as in any call. Cost: one memcpy per put, an exchange without
// bytes per owner and round. Thread rule: PeerBuffers any thread; the memory its rank's.
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

// The data put into one member's buffer in one round.
class PeerBuffer {
 public:
  explicit PeerBuffer(int64_t capacity_bytes) : capacity_hint_(capacity_bytes) {}
  void put(const at::Tensor& rows, const PutNote& note);
  // REQUIRES: no further puts.
  Delivery take();
  int64_t bytes() const { return next_.load(); }

 private:
  // Grows to at least `bytes`, keeping the contents.
  void grow(int64_t bytes);

  std::shared_mutex memory_mutex_;  // shared: writing rows; exclusive: moving to a larger block
  // Not from any rank's allocator, because one rank allocates it and another one takes it.
  std::shared_ptr<uint8_t[]> memory_;
  int64_t capacity_ = 0;
  int64_t capacity_hint_;
  std::atomic<int64_t> next_{0};  // end of the last allocated slot, in bytes
  std::mutex notes_mutex_;
  std::vector<PutNote> notes_;
  int64_t width_ = 0;
};

// The buffers of all members of a group: shared by their threads.
class PeerBuffers {
 public:
  explicit PeerBuffers(int members) : owners_(static_cast<size_t>(members)) {}
  std::shared_ptr<PeerBuffer> buffer(int owner, int64_t round);  // created on first use
  // The same, once no further puts will come. The next buffer is created with the same size.
  std::shared_ptr<PeerBuffer> remove(int owner, int64_t round);

 private:
  struct Owner {
    std::mutex mutex;
    std::map<int64_t, std::shared_ptr<PeerBuffer>> rounds;
    int64_t capacity_bytes = int64_t{1} << 16;  // size of the next new buffer
  };
  std::vector<Owner> owners_;
};

PeerMemoryPtr make_peer_memory(std::shared_ptr<Run> run, const Group& group, const std::string& label,
                               std::shared_ptr<PeerBuffers> buffers);

}  // namespace ranklab::cpu_sim
