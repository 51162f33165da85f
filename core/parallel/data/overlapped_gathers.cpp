#include "core/parallel/data/overlapped_gathers.h"

#include "core/base/error.h"

namespace ranklab {

void OverlappedGathers::add(BucketShard& shard, const std::vector<std::string>& units) {
  for (const std::string& unit : units) buckets_of_[unit].push_back(buckets_.size());
  buckets_.push_back({.shard = &shard});
}

void OverlappedGathers::begin() {
  RANKLAB_CHECK(not_current_ == 0, ErrorKind::kInternal, .where = "overlapped gathers",
                .what = "parameters changed before all of the previous update were gathered",
                .got = std::to_string(not_current_) + " buckets", .fix = "settle() first");
  for (Bucket& bucket : buckets_) bucket.state = State::kStale;
  not_current_ = buckets_.size();
  for (const std::string& unit : first_uses_) start(unit);
}

void OverlappedGathers::settle() {
  if (not_current_ == 0) return;
  for (Bucket& bucket : buckets_) start(bucket);
  for (Bucket& bucket : buckets_) finish(bucket);
}

void OverlappedGathers::enter(const std::string& unit, const std::string& next) {
  if (first_uses_.empty()) first_uses_ = {unit, next};
  if (not_current_ == 0) return;
  start(unit);
  start(next);
  const auto buckets = buckets_of_.find(unit);
  if (buckets == buckets_of_.end()) return;
  for (const size_t index : buckets->second) finish(buckets_[index]);
}

void OverlappedGathers::start(const std::string& unit) {
  const auto buckets = buckets_of_.find(unit);
  if (buckets == buckets_of_.end()) return;
  for (const size_t index : buckets->second) start(buckets_[index]);
}

void OverlappedGathers::start(Bucket& bucket) {
  if (bucket.state != State::kStale) return;
  bucket.shard->start_gather();
  bucket.state = State::kGathering;
}

void OverlappedGathers::finish(Bucket& bucket) {
  if (bucket.state != State::kGathering) return;
  bucket.shard->finish_gather();
  bucket.state = State::kCurrent;
  --not_current_;
}

}  // namespace ranklab
