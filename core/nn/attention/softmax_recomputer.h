// A softmax part of attention of which only the inputs are saved. Its results have two users, the next layer's weight
// gradient and its own backward: the first recomputes them and the second frees them. Internal to core/nn. Cost: one
// more forward of it. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/grad_mode.h>

#include "core/nn/recomputable_output.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {

// Softmaxed: a struct with `out` and whatever else backward needs.
template <typename Softmaxed>
class SoftmaxRecomputer : public OutputRecomputer {
 public:
  virtual Softmaxed forward() const = 0;

  at::Tensor take() final {
    at::Tensor out = computed().out;
    taken_ = true;
    release();
    return out;
  }

 protected:
  const Softmaxed& computed() {
    if (now_.out.defined()) return now_;
    const at::NoGradGuard no_grad;
    const RecomputeScope uncounted;
    now_ = forward();
    return now_;
  }
  // Call when backward is done: only the output may still be needed.
  void differentiated() {
    Softmaxed rest;
    rest.out = now_.out;
    now_ = rest;
    differentiated_ = true;
    release();
  }

 private:
  void release() {
    if (taken_ && differentiated_) now_ = {};
  }

  Softmaxed now_;
  bool taken_ = false, differentiated_ = false;
};

}  // namespace ranklab
