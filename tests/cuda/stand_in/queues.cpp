#include "tests/cuda/stand_in/queues.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace ranklab::stand_in {
namespace {

constexpr int kLateEvery = 5;
constexpr std::chrono::microseconds kLate{50};

}  // namespace

bool Stream::begin_capture(CapturePtr capture) {
  const std::lock_guard lock(mutex_);
  if (capture_) return false;
  capture_ = std::move(capture);
  captured_work_ = waited_for_ = 0;
  return true;
}

bool Stream::end_capture() {
  const std::lock_guard lock(mutex_);
  capture_ = nullptr;
  return waited_for_ == captured_work_;
}

CapturePtr Stream::capture() const {
  const std::lock_guard lock(mutex_);
  return capture_;
}

int64_t Stream::captured_work() const {
  const std::lock_guard lock(mutex_);
  return captured_work_;
}

void Stream::note_waited_for(int64_t captured_work) {
  const std::lock_guard lock(mutex_);
  waited_for_ = std::max(waited_for_, captured_work);
}

void Stream::add(StreamWork work) {
  const std::lock_guard lock(mutex_);
  if (capture_) {
    ++captured_work_;
    return capture_->push_back(std::move(work));
  }
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
  fresh->capture = stream.capture();
  fresh->stream = &stream;
  fresh->captured_work = stream.captured_work() + 1;  // with this record
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
  const auto record = last();
  if (!record) return;
  if (record->capture && record->stream != &stream) record->stream->note_waited_for(record->captured_work);
  stream.add([record] { record->wait(); });
}

bool Event::reached() const {
  const auto record = last();
  if (!record) return true;
  const std::lock_guard lock(record->mutex);
  return record->reached;
}

CapturePtr Event::capture() const {
  const auto record = last();
  return record ? record->capture : nullptr;
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
