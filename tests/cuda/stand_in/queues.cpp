#include "tests/cuda/stand_in/queues.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace ranklab::stand_in {
namespace {

constexpr int kLateEvery = 5;
constexpr std::chrono::microseconds kLate{50};

}  // namespace

void Stream::add(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  ++added_;
  if (!std::exchange(started_, true)) std::thread([this] { run(); }).detach();
  changed_.notify_all();
}

void Stream::run() {
  for (int number = 0;; ++number) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !work_.empty(); });
      work = std::move(work_.front());
      work_.pop_front();
    }
    if (number % kLateEvery == 0) std::this_thread::sleep_for(kLate);
    work();
    work = nullptr;
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return done_ == added_;
}

void Stream::synchronize() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, until = added_] { return done_ >= until; });
}

void Event::State::wait_for(int64_t record) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this, record] { return reached >= record; });
}

void Event::record(Stream& stream) {
  int64_t number = 0;
  {
    const std::lock_guard lock(state_->mutex);
    number = ++state_->recorded;
  }
  stream.add([state = state_, number] {
    const std::lock_guard lock(state->mutex);
    if (number <= state->reached) return;  // a later record on another stream came first
    state->reached = number;
    state->at = std::chrono::steady_clock::now();
    state->changed.notify_all();
  });
}

void Event::put_in_front_of(Stream& stream) {
  int64_t number = 0;
  {
    const std::lock_guard lock(state_->mutex);
    number = state_->recorded;
  }
  stream.add([state = state_, number] { state->wait_for(number); });
}

bool Event::reached() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reached >= state_->recorded;
}

void Event::synchronize() const {
  int64_t number = 0;
  {
    const std::lock_guard lock(state_->mutex);
    number = state_->recorded;
  }
  state_->wait_for(number);
}

std::chrono::steady_clock::time_point Event::time() const {
  const std::lock_guard lock(state_->mutex);
  return state_->at;
}

}  // namespace ranklab::stand_in
