#include "backends/cuda/nccl/failure.h"

#include <utility>

namespace ranklab {

bool Failure::set(const Error& error, bool tell) {
  const std::lock_guard lock(mutex_);
  if (error_ && !std::exchange(unwinding_, false)) return false;
  error_.emplace(error);
  tell_ = tell;
  set_ = true;
  came_.notify_all();
  return true;
}

void Failure::set_unwinding() {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_.emplace(ErrorKind::kCommunication,
                 ErrorText{.what = "this rank gave up, and its GPU does not become idle", .fix = "see its log"});
  unwinding_ = set_ = true;
}

bool Failure::wait_for(std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return came_.wait_for(lock, limit, [this] { return error_.has_value(); });
}

std::optional<Error> Failure::get() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Failure::throw_if_set() const {
  if (!set_) return;
  throw *get();
}

std::optional<Error> Failure::take_unreported() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(tell_, false)) return std::nullopt;
  return error_;
}

}  // namespace ranklab
