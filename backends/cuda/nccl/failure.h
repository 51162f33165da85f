// The first error of this process's rank, whichever thread detects it: the rank's own, the watchdog (a call that does
// not end, an error of NCCL) or the heartbeat (another rank failed or is gone). Later errors are consequences and are
// dropped. Thread rule: any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/base/error.h"

namespace ranklab {

class Failure {
 public:
  // RETURNS: whether it is the first error. `tell`: the other ranks have not been notified of it yet.
  bool set(const Error& error, bool tell);
  // Announces an error that is unwinding and whose text is not known yet; the next set() replaces it.
  void set_unwinding();
  bool is_set() const { return set_; }
  // Waits for an error that another thread is about to find; false if none is found within `limit`.
  bool wait_for(std::chrono::milliseconds limit) const;
  std::optional<Error> get() const;
  void throw_if_set() const;
  // The error to report to the other ranks; returned only once.
  std::optional<Error> take_unreported();

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  std::atomic<bool> set_{false};
  std::optional<Error> error_;
  bool tell_ = false;
  bool unwinding_ = false;  // error_ is a placeholder
};

}  // namespace ranklab
