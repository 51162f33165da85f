// Work that a rank does while a transfer of tokens is in flight: in forward, such as its shared experts
// (Megatron-Core's
// --moe-shared-expert-overlap); in backward, while the tokens' gradients are sent back, such as the weight gradients of
// its experts (--delay-wgrad-compute). Thread rule: its rank's thread, or autograd's.
#pragma once
#include <functional>
#include <utility>

namespace ranklab {

class WorkBeside {
 public:
  // Null: none.
  explicit WorkBeside(std::function<void()> forward, std::function<void()> backward = nullptr)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  bool has_forward() const { return forward_ != nullptr; }
  bool has_backward() const { return backward_ != nullptr; }
  // The first call does the work; later ones do nothing.
  void do_forward() {
    if (const std::function<void()> work = std::exchange(forward_, nullptr)) work();
  }
  // For the transfer that will do it.
  std::function<void()> take_backward() { return std::exchange(backward_, nullptr); }

 private:
  std::function<void()> forward_, backward_;
};

}  // namespace ranklab
