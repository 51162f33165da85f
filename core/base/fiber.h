// A function with its own stack that can suspend in the middle and let its thread run something else (POSIX ucontext).
// It stays on one thread, so everything thread-local is the same before and after. Cost: under a microsecond per
// switch; stack memory is reserved, and committed only as far as it is touched. Thread rule: the thread that created
// it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace ranklab {

class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{8} << 20;

  explicit Fiber(std::function<void()> body);
  // REQUIRES: done(), or never resumed: objects on its stack would not be destroyed otherwise.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it suspends or ends. Rethrows what its body threw.
  void resume();
  bool done() const;

  // Returns to the resume() of the running fiber. REQUIRES: a fiber is running on this thread.
  static void suspend();

  struct State;  // defined in fiber.cpp

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ranklab
