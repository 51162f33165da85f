#include "core/base/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/error.h"

// The sanitizers must be notified of stacks that they did not see being created.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ranklab {

struct Fiber::State {
  std::function<void()> body;
  std::exception_ptr error;
  ucontext_t own{}, resumer{};
  char* stack = nullptr;  // with a guard page below
  size_t guard_bytes = 0;
  bool started = false, done = false;
  State* previous = nullptr;  // the fiber that was running on this thread before
  const void* resumer_stack = nullptr;
  size_t resumer_stack_bytes = 0;
#if defined(__SANITIZE_THREAD__)
  void* tsan_own = nullptr;
  void* tsan_resumer = nullptr;
#endif
};

namespace {

thread_local Fiber::State* t_running = nullptr;

struct Stack {
  char* memory;
  size_t guard_bytes;
};

Stack make_stack() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, Fiber::kStackBytes + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  RANKLAB_CHECK(memory != MAP_FAILED, ErrorKind::kEnvironment, .where = "fiber", .what = "no memory for a stack",
                .got = std::strerror(errno), .want = std::to_string(Fiber::kStackBytes) + " bytes",
                .fix = "use fewer ranks, or raise ulimit -v");
  ::mprotect(memory, page, PROT_NONE);
  return {static_cast<char*>(memory), page};
}

}  // namespace

// The sanitizers' view of a switch, before and after it.
struct FiberSwitch {
  static void before_resume([[maybe_unused]] Fiber::State& s, [[maybe_unused]] void** fake) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake, s.stack + s.guard_bytes, Fiber::kStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
    if (s.tsan_own == nullptr) s.tsan_own = __tsan_create_fiber(0);
    s.tsan_resumer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(s.tsan_own, 0);
#endif
  }
  static void inside([[maybe_unused]] Fiber::State& s, [[maybe_unused]] void* fake) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &s.resumer_stack, &s.resumer_stack_bytes);
#endif
  }
  static void before_suspend([[maybe_unused]] Fiber::State& s, [[maybe_unused]] void** fake) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake, s.resumer_stack, s.resumer_stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(s.tsan_resumer, 0);
#endif
  }
  static void outside([[maybe_unused]] void* fake) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }
};

namespace {

void enter() {
  Fiber::State& s = *t_running;
  FiberSwitch::inside(s, nullptr);
  try {
    s.body();
  } catch (...) {
    s.error = std::current_exception();
  }
  s.done = true;
  t_running = s.previous;
  FiberSwitch::before_suspend(s, nullptr);  // the stack is left for good
  ::setcontext(&s.resumer);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  const Stack stack = make_stack();
  state_->body = std::move(body);
  state_->stack = stack.memory;
  state_->guard_bytes = stack.guard_bytes;
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (state_->tsan_own != nullptr) __tsan_destroy_fiber(state_->tsan_own);
#endif
  ::munmap(state_->stack, kStackBytes + state_->guard_bytes);
}

bool Fiber::done() const { return state_->done; }

void Fiber::resume() {
  State& s = *state_;
  RANKLAB_CHECK(!s.done, ErrorKind::kInternal, .where = "fiber", .what = "it has ended");
  s.previous = std::exchange(t_running, &s);
  void* fake = nullptr;
  if (!s.started) {
    s.started = true;
    ::getcontext(&s.own);
    s.own.uc_stack.ss_sp = s.stack + s.guard_bytes;
    s.own.uc_stack.ss_size = kStackBytes;
    ::makecontext(&s.own, enter, 0);
  }
  FiberSwitch::before_resume(s, &fake);
  ::swapcontext(&s.resumer, &s.own);
  FiberSwitch::outside(fake);
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

void Fiber::suspend() {
  State* const s = t_running;
  RANKLAB_CHECK(s != nullptr, ErrorKind::kInternal, .where = "fiber", .what = "none is running on this thread");
  t_running = s->previous;
  void* fake = nullptr;
  FiberSwitch::before_suspend(*s, &fake);
  ::swapcontext(&s->own, &s->resumer);
  FiberSwitch::inside(*s, fake);
}

}  // namespace ranklab
