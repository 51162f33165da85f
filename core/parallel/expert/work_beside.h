// Work that a rank does while a transfer of tokens is in flight, such as its shared experts (Megatron-Core's
// --moe-shared-expert-overlap). Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <utility>

namespace ranklab {

class WorkBeside {
 public:
  explicit WorkBeside(std::function<void()> work) : work_(std::move(work)) {}

  bool done() const { return !work_; }
  // The first call does the work; later ones do nothing.
  void do_it() {
    if (const std::function<void()> work = std::exchange(work_, nullptr)) work();
  }

 private:
  std::function<void()> work_;
};

}  // namespace ranklab
