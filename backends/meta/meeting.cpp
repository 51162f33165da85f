#include "backends/meta/meeting.h"

#include <algorithm>

namespace ranklab::meta {

int Meetings::communicator(const std::string& label) {
  const std::lock_guard lock(mutex_);
  return communicators_.try_emplace(label, static_cast<int>(communicators_.size())).first->second;
}

std::string Meetings::text(const MeetingKey& key) const {
  const auto label =
      std::ranges::find(communicators_, key.communicator, [](const auto& known) { return known.second; });
  std::string out = label->first + ", call " + std::to_string(key.number);
  if (key.from >= 0) out += ", message from " + std::to_string(key.from) + " to " + std::to_string(key.to);
  return out;
}

void Meetings::arrive(const MeetingKey& key, int global_rank, const Posting& posting) {
  const std::lock_guard lock(mutex_);
  Table& table = tables_[key];
  ++table.arrived;
  table.met.latest_ns = std::max(table.met.latest_ns, posting.virtual_ns);
  table.met.most_bytes = std::max(table.met.most_bytes, posting.bytes);
  if (posting.numbers.defined()) table.met.numbers[global_rank] = posting.numbers;
  const auto [first, last] = waiting_.equal_range(key);
  for (auto waiter = first; waiter != last; ++waiter)
    if (table.arrived >= waiter->second->expected) waiter->second->woken.notify_one();
}

bool Meetings::complete(const MeetingKey& key, int expected) const {
  const auto table = tables_.find(key);
  return table != tables_.end() && table->second.arrived >= expected;
}

bool Meetings::met(const MeetingKey& key, int expected) const {
  const std::lock_guard lock(mutex_);
  return complete(key, expected);
}

// REQUIRES: mutex_.
void Meetings::give_up() {
  broken_ = true;
  for (const auto& [key, waiter] : waiting_) waiter->woken.notify_one();
}

// REQUIRES: mutex_. A rank whose call is complete is not stuck, it has only not woken yet.
void Meetings::check_stuck() {
  if (broken_ || waiting_.empty() || static_cast<int>(waiting_.size()) < running_) return;
  for (const auto& [key, waiter] : waiting_)
    if (complete(key, waiter->expected)) return;
  stuck_ = text(waiting_.begin()->first);
  give_up();
}

Met Meetings::leave(const MeetingKey& key, int expected) {
  std::unique_lock lock(mutex_);
  if (!complete(key, expected)) {
    Waiter waiter{.expected = expected};
    const auto mine = waiting_.emplace(key, &waiter);
    check_stuck();
    waiter.woken.wait(lock, [&] { return broken_ || complete(key, expected); });
    waiting_.erase(mine);
  }
  RANKLAB_CHECK(complete(key, expected), ErrorKind::kCommunication, .where = "world of shapes",
                .what = stuck_.empty() ? "another rank failed" : "all ranks wait for calls that nobody makes",
                .got = stuck_.empty() ? text(key) : stuck_, .want = "every member of the group makes the call",
                .fix = "run the same on real tensors: train --train-iters 1 names the ranks");
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
  give_up();
}

}  // namespace ranklab::meta
