// Passes recorded events to viewers while the run continues. Each rank has a ring buffer of its last events. A rank
// writes to it and never waits for a viewer; a viewer that connects late gets what is still there, and one that is too
// slow loses the oldest events and is told how many. Any number of readers, each with its own position. Cost: a rank
// pays one uncontended lock and a copy of the event, about 0.1 us; memory per rank: capacity x sizeof(Event) (about 200
// bytes), and the events' arrays. Thread rule: push() from the rank's thread, the rest from any.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/trace/event.h"
#include "core/trace/event_sink.h"

namespace ranklab {

class LiveFeed final : public EventSink {
 public:
  static constexpr size_t kCapacity = 16'384;  // events kept per rank

  explicit LiveFeed(int world_size, size_t capacity = kCapacity);
  ~LiveFeed() override;

  int world_size() const;
  size_t capacity() const;

  void push(const RankTrace& so_far, const Event& event, std::vector<double> array = {}) override;
  // Call when nothing will follow. `error` is empty when the run ended well.
  void end(std::string error);
  bool ended() const;
  std::string error() const;

 private:
  friend class LiveReader;
  struct Ring;
  std::vector<std::unique_ptr<Ring>> rings_;
  size_t capacity_;
  mutable std::mutex mutex_;
  bool ended_ = false;
  std::string error_;
};

// One viewer's position in a feed. Thread rule: one thread at a time.
class LiveReader {
 public:
  explicit LiveReader(std::shared_ptr<const LiveFeed> feed);

  // A read stops at or before the event whose array would bring the total length of the arrays above this.
  static constexpr size_t kMostNumbers = size_t{1} << 16;
  // What the rank recorded since the last call, at most `limit` events: its label, groups and all names so far (the
  // indices in earlier events stay valid), the new events, and in `dropped` how many were overwritten unread so far.
  // Returns false, and leaves `out` empty except for its rank, when there is nothing new.
  bool read(int global_rank, RankTrace& out, size_t limit = 4096);
  int64_t dropped() const;  // of all ranks since the beginning

 private:
  std::shared_ptr<const LiveFeed> feed_;
  std::vector<uint64_t> next_;  // per rank: index of the first unread event
  std::vector<int64_t> lost_;   // per rank
};

}  // namespace ranklab
