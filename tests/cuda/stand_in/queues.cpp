#include "tests/cuda/stand_in/queues.h"

#include <thread>
#include <utility>

namespace ranklab::stand_in {
namespace {

constexpr int kLateEvery = 5;
constexpr std::chrono::microseconds kLate{50};

}  // namespace

bool Stream::begin_capture() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(captures_, true);
}

std::vector<StreamWork> Stream::end_capture() {
  const std::lock_guard lock(mutex_);
  captures_ = false;
  return std::exchange(captured_, {});
}

bool Stream::captures() const {
  const std::lock_guard lock(mutex_);
  return captures_;
}

void Stream::add(StreamWork work) {
  const std::lock_guard lock(mutex_);
  if (captures_) return captured_.push_back(std::move(work));
  work_.push_back(std::move(work));
  ++added_;
  if (!std::exchange(started_, true)) std::thread([this] { run(); }).detach();
  changed_.notify_all();
}

void Stream::run() {
  for (int number = 0;; ++number) {
    StreamWork work;
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

void Event::Record::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return reached; });
}

std::shared_ptr<Event::Record> Event::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void Event::record(Stream& stream) {
  const auto fresh = std::make_shared<Record>();
  fresh->captured = stream.captures();
  {
    const std::lock_guard lock(mutex_);
    last_ = fresh;
  }
  stream.add([fresh] {
    const std::lock_guard lock(fresh->mutex);
    fresh->reached = true;
    fresh->at = std::chrono::steady_clock::now();
    fresh->changed.notify_all();
  });
}

void Event::put_in_front_of(Stream& stream) {
  if (const auto record = last()) stream.add([record] { record->wait(); });
}

bool Event::reached() const {
  const auto record = last();
  if (!record) return true;
  const std::lock_guard lock(record->mutex);
  return record->reached;
}

bool Event::captured() const {
  const auto record = last();
  return record && record->captured;
}

void Event::synchronize() const {
  if (const auto record = last()) record->wait();
}

std::chrono::steady_clock::time_point Event::time() const {
  const auto record = last();
  if (!record) return {};
  const std::lock_guard lock(record->mutex);
  return record->at;
}

}  // namespace ranklab::stand_in
