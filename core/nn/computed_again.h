// A softmax part of attention that is kept as its inputs alone: the first of the two that need what it computed (the
// next layer's weight gradient, its own backward) runs it again, and it is there until the second has had it. Internal
// to core/nn. Cost: one more forward of it. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/grad_mode.h>

#include "core/nn/output_again.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {

// Softmaxed: `out`, and what else backward needs.
template <typename Softmaxed>
class ComputedAgain : public OutputAgain {
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
    const RecomputeScope again;
    now_ = forward();
    return now_;
  }
  // Backward has been through it: only the output may still be asked for.
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
