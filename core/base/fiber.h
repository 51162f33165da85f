// A piece of work with a stack of its own, which may stop in the middle and let its thread go on with something else
// (POSIX ucontext). It stays on one thread, so that everything thread-local is the same before and after. Cost: under a
// microsecond a switch; the stack's memory is reserved, and used as far as it is touched. Thread rule: the thread that
// made it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace ranklab {

class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{8} << 20;

  explicit Fiber(std::function<void()> body);
  // REQUIRES: done(), or never resumed: what is on its stack would not be destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it suspends or ends. Rethrows what its body threw.
  void resume();
  bool done() const;

  // Back to who resumed the running fiber. REQUIRES: a fiber is running on this thread.
  static void suspend();

  struct State;  // of fiber.cpp

 private:
  std::unique_ptr<State> state_;
};

}  // namespace ranklab
