#include "backends/cpu_sim/transport/waited_buffer.h"

#include <gloo/common/error.h>

namespace ranklab::cpu_sim {

void BufferState::issued() {
  const std::lock_guard lock(mutex_);
  ++pending_;
}

void BufferState::complete(Direction direction, int peer, const std::string& error) {
  const std::lock_guard lock(mutex_);
  --pending_;
  of(direction).peers.push_back(peer);
  if (!error.empty()) error_ = error;
  of(direction).changed.notify_all();
}

void BufferState::fail(const std::string& error) {
  const std::lock_guard lock(mutex_);
  pending_ = 0;
  error_ = error;
  sends_.changed.notify_all();
  recvs_.changed.notify_all();
}

bool BufferState::has_pending() const {
  const std::lock_guard lock(mutex_);
  return pending_ > 0;
}

void BufferState::begin_copy() {
  const std::lock_guard lock(mutex_);
  ++copies_;
}

void BufferState::end_copy() {
  const std::lock_guard lock(mutex_);
  if (--copies_ == 0) idle_.notify_all();
}

void BufferState::wait_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return copies_ == 0; });
}

bool BufferState::wait(Direction direction, int* peer, std::chrono::milliseconds limit) {
  Completions& done = of(direction);
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !done.peers.empty() || done.aborted || !error_.empty(); };
  if (!done.changed.wait_for(lock, limit, ready))
    throw gloo::IoException("no peer came within " + std::to_string(limit.count()) + " ms");
  if (!error_.empty()) throw gloo::IoException(error_);
  if (done.aborted) {
    done.aborted = false;
    return false;
  }
  if (peer != nullptr) *peer = done.peers.front();
  done.peers.pop_front();
  return true;
}

void BufferState::abort(Direction direction) {
  const std::lock_guard lock(mutex_);
  of(direction).aborted = true;
  of(direction).changed.notify_all();
}

std::string sizes_differ(int sender, size_t sent, int receiver, size_t received) {
  return "rank " + std::to_string(sender) + " sent " + std::to_string(sent) + " bytes, rank " +
         std::to_string(receiver) + " receives " + std::to_string(received);
}

}  // namespace ranklab::cpu_sim
