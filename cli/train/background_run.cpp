#include "cli/train/background_run.h"

#include <utility>

namespace ranklab {

BackgroundRun::BackgroundRun(TrainRun& run)
    : run_(run), thread_([this] {
        try {
          code_ = run_.run();
        } catch (...) {
          error_ = std::current_exception();
        }
      }) {}

BackgroundRun::~BackgroundRun() {
  if (!thread_.joinable()) return;
  run_.stepper()->detach();
  thread_.join();
}

int BackgroundRun::join() {
  thread_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return code_;
}

}  // namespace ranklab
