// The clock of a promise such as "within a second", on a machine that does other things, too: it measures the seconds
// of processor that a thread which always wants one has got. On an idle machine these are seconds of the wall. Beside n
// others on a core they pass n times as slowly, as does what is measured, which waits for its turn like that thread;
// and they stand still while the machine or the process is stopped. A promise that is broken by a wait shows as on the
// wall. Cost: it keeps one core busy while it lives.
#pragma once
#include <time.h>

#include <atomic>
#include <thread>

namespace ranklab {

class FairClock {
 public:
  FairClock() : thread_([this](const std::stop_token& end) { count(end); }) {}

  double seconds() const { return static_cast<double>(ns_.load()) * 1e-9; }

 private:
  void count(const std::stop_token& end) {
    while (!end.stop_requested()) {
      timespec used{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
      ns_ = used.tv_sec * 1'000'000'000 + used.tv_nsec;
    }
  }

  std::atomic<int64_t> ns_{0};
  std::jthread thread_;
};

}  // namespace ranklab
