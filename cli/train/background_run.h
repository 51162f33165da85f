// A training run in its own thread, while the main thread interacts with the user (a prompt, a window). Thread rule:
// one thread.
#pragma once
#include <exception>
#include <thread>

#include "cli/train/train_run.h"

namespace ranklab {

class BackgroundRun {
 public:
  explicit BackgroundRun(TrainRun& run);
  ~BackgroundRun();  // releases the ranks, and waits for the run's end
  // Waits for the run's end. RETURNS: the exit code; throws what the run threw.
  int join();

 private:
  TrainRun& run_;
  int code_ = 0;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace ranklab
