#include "backends/meta/meeting.h"

#include <algorithm>

namespace ranklab::meta {
namespace {

std::string text(const MeetingKey& key) {
  std::string out = key.group + ", call " + std::to_string(key.number);
  if (key.from >= 0) out += ", message from " + std::to_string(key.from) + " to " + std::to_string(key.to);
  return out;
}

}  // namespace

void Meetings::arrive(const MeetingKey& key, int global_rank, const Posting& posting) {
  const std::lock_guard lock(mutex_);
  Table& table = tables_[key];
  ++table.arrived;
  table.met.latest_ns = std::max(table.met.latest_ns, posting.virtual_ns);
  table.met.most_bytes = std::max(table.met.most_bytes, posting.bytes);
  if (posting.numbers.defined()) table.met.numbers[global_rank] = posting.numbers;
  changed_.notify_all();
}

bool Meetings::complete(const MeetingKey& key, int expected) const {
  const auto table = tables_.find(key);
  return table != tables_.end() && table->second.arrived >= expected;
}

bool Meetings::met(const MeetingKey& key, int expected) const {
  const std::lock_guard lock(mutex_);
  return complete(key, expected);
}

// REQUIRES: mutex_. A rank whose call is complete has only not woken yet.
void Meetings::check_stuck() {
  if (broken_ || waiting_.empty() || static_cast<int>(waiting_.size()) < running_) return;
  for (const auto& [key, expected] : waiting_)
    if (complete(key, expected)) return;
  broken_ = true;
  stuck_ = text(waiting_.begin()->first);
  changed_.notify_all();
}

Met Meetings::leave(const MeetingKey& key, int expected) {
  std::unique_lock lock(mutex_);
  const auto mine = waiting_.emplace(key, expected);
  check_stuck();
  changed_.wait(lock, [&] { return broken_ || complete(key, expected); });
  waiting_.erase(mine);
  RANKLAB_CHECK(!broken_ || complete(key, expected), ErrorKind::kCommunication, .where = "world of shapes",
                .what = stuck_.empty() ? "another rank failed" : "all ranks wait for calls that nobody makes",
                .got = stuck_.empty() ? text(key) : stuck_, .want = "every member of the group makes the call",
                .fix = "run the same on real tensors: train --world-size N --train-iters 1 names the ranks");
  const auto table = tables_.find(key);
  Met met = table->second.met;
  if (++table->second.left == expected) tables_.erase(table);
  return met;
}

void Meetings::returned() {
  const std::lock_guard lock(mutex_);
  --running_;
  check_stuck();
}

void Meetings::failed() {
  const std::lock_guard lock(mutex_);
  --running_;
  broken_ = true;
  changed_.notify_all();
}

}  // namespace ranklab::meta
