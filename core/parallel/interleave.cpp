#include "core/parallel/interleave.h"

#include <ATen/ThreadLocalState.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/base/fiber.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

// Thrown in a piece when the other one has failed.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("the other of two interleaved pieces failed") {}
};

struct Pair {
  bool failed = false;
};

thread_local Pair* t_pair = nullptr;
thread_local TurnWatch* t_watch = nullptr;

// A piece with its own copy of thread-local state: whether gradients are recorded (in forward, not in backward), and
// whether it recomputes activations.
class InterleavedPiece {
 public:
  InterleavedPiece(int number, const std::function<void()>& body, const InterleaveHooks& hooks)
      : number_(number), hooks_(hooks), fiber_([&body] { body(); }) {}

  bool done() const { return fiber_.done(); }

  void turn() {
    at::ThreadLocalState outer;
    if (state_) at::ThreadLocalState::setThreadLocalState(*state_);
    if (hooks_.resumed) hooks_.resumed(number_);
    std::exception_ptr error;
    const int outer_scopes = exchange_recompute_scopes(recompute_scopes_);
    try {
      fiber_.resume();
    } catch (const Stopped&) {
    } catch (...) {
      error = std::current_exception();
    }
    recompute_scopes_ = exchange_recompute_scopes(outer_scopes);
    if (hooks_.suspended) hooks_.suspended(number_);
    state_.emplace();
    at::ThreadLocalState::setThreadLocalState(outer);
    if (error) std::rethrow_exception(error);
  }

 private:
  int number_;
  const InterleaveHooks& hooks_;
  Fiber fiber_;
  std::optional<at::ThreadLocalState> state_;
  int recompute_scopes_ = 0;
};

}  // namespace

void interleave(const std::function<void()>& first, const std::function<void()>& second, const InterleaveHooks& hooks) {
  Pair pair;
  Pair* const outer = std::exchange(t_pair, &pair);
  InterleavedPiece a(0, first, hooks), b(1, second, hooks);
  std::exception_ptr error;
  for (InterleavedPiece* piece = &a; !a.done() || !b.done(); piece = piece == &a ? &b : &a) {
    if (piece->done()) continue;
    try {
      piece->turn();
    } catch (...) {
      if (!error) error = std::current_exception();
      pair.failed = true;
    }
  }
  t_pair = outer;
  if (error) std::rethrow_exception(error);
}

bool is_interleaved() { return t_pair != nullptr; }

TurnWatch* exchange_turn_watch(TurnWatch* watch) { return std::exchange(t_watch, watch); }

void take_turns() {
  if (t_pair == nullptr) return;
  TurnWatch* const own = std::exchange(t_watch, nullptr);
  if (own != nullptr) own->suspended();
  Fiber::suspend();
  t_watch = own;
  if (own != nullptr) own->resumed();
  if (t_pair->failed) throw Stopped();
}

at::Tensor await_in_turns(const WorkPtr& work) {
  take_turns();
  return work->wait();
}

}  // namespace ranklab
