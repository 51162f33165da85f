#include "core/live/live_feed.h"

#include <algorithm>
#include <utility>

namespace ranklab {

struct LiveFeed::Ring {
  std::mutex mutex;
  RankTrace about;            // label, groups and names; no events
  std::vector<Event> events;  // event n is at n % capacity, and so is its array
  std::vector<std::vector<double>> arrays;
  uint64_t written = 0;
};

LiveFeed::LiveFeed(int world_size, size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {
  for (int rank = 0; rank < world_size; ++rank) {
    rings_.push_back(std::make_unique<Ring>());
    rings_.back()->about.global_rank = rank;
  }
}

LiveFeed::~LiveFeed() = default;

int LiveFeed::world_size() const { return static_cast<int>(rings_.size()); }
size_t LiveFeed::capacity() const { return capacity_; }

void LiveFeed::push(const RankTrace& so_far, const Event& event, std::vector<double> array) {
  Ring& ring = *rings_[static_cast<size_t>(so_far.global_rank)];
  const std::lock_guard lock(ring.mutex);
  if (ring.about.label.empty()) ring.about.label = so_far.label;
  if (ring.about.groups.size() != so_far.groups.size()) ring.about.groups = so_far.groups;
  for (size_t i = ring.about.names.size(); i < so_far.names.size(); ++i) ring.about.names.push_back(so_far.names[i]);
  if (ring.events.size() < capacity_) {
    ring.events.push_back(event);
    ring.arrays.push_back(std::move(array));
  } else {
    ring.events[ring.written % capacity_] = event;
    ring.arrays[ring.written % capacity_] = std::move(array);
  }
  ++ring.written;
}

void LiveFeed::end(std::string error) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  error_ = std::move(error);
}

bool LiveFeed::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::string LiveFeed::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

LiveReader::LiveReader(std::shared_ptr<const LiveFeed> feed)
    : feed_(std::move(feed)), next_(feed_->rings_.size(), 0), lost_(feed_->rings_.size(), 0) {}

bool LiveReader::read(int global_rank, RankTrace& out, size_t limit) {
  const auto index = static_cast<size_t>(global_rank);
  LiveFeed::Ring& ring = *feed_->rings_[index];
  const std::lock_guard lock(ring.mutex);
  out = RankTrace();
  out.global_rank = global_rank;
  uint64_t& next = next_[index];
  if (next == ring.written) return false;
  const uint64_t oldest = ring.written - ring.events.size();
  if (next < oldest) {
    lost_[index] += static_cast<int64_t>(oldest - next);
    next = oldest;
  }
  out.label = ring.about.label;
  out.groups = ring.about.groups;
  out.names = ring.about.names;
  out.dropped = lost_[index];
  const uint64_t end = std::min<uint64_t>(ring.written, next + limit);
  out.events.reserve(end - next);
  size_t numbers = 0;
  for (; next < end; ++next) {
    const std::vector<double>& array = ring.arrays[next % feed_->capacity_];
    numbers += array.size();
    if (numbers > kMostNumbers && !out.events.empty()) break;
    Event& event = out.events.emplace_back(ring.events[next % feed_->capacity_]);
    if (array.empty()) continue;
    out.arrays.push_back(array);
    event.array = static_cast<uint32_t>(out.arrays.size());
  }
  return true;
}

int64_t LiveReader::dropped() const {
  int64_t sum = 0;
  for (const int64_t lost : lost_) sum += lost;
  return sum;
}

}  // namespace ranklab
