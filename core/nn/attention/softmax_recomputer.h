// The softmax part of an attention that saves only its inputs. Its results have two users, the next layer's weight
// gradient and attention's own backward: the first of them recomputes the results, and the second frees them. Where
// there is no fused kernel, the graph that autograd recorded is kept instead, and the virtual clock is charged for a
// recomputation all the same. Internal to core/nn. Cost: one more forward of the softmax part. Thread rule: its rank's
// thread.
#pragma once
#include <ATen/core/grad_mode.h>

#include <utility>

#include "core/nn/recomputable_output.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {

// Softmaxed: a struct with `out`, `followed` and anything else that backward needs.
template <typename Softmaxed>
class SoftmaxRecomputer : public OutputRecomputer {
 public:
  at::Tensor first_output() {
    Softmaxed first = forward();
    at::Tensor out = first.out;
    if (first.followed.defined()) {
      first.out = out.detach();  // the caller's tensor will refer to the node that keeps this
      kept_ = std::move(first);
    }
    return out;
  }
  at::Tensor take() final {
    at::Tensor out = computed().out;
    taken_ = true;
    release();
    return out;
  }

  void will_not_be_taken() final { taken_ = true; }

 protected:
  virtual Softmaxed forward() const = 0;
  virtual CostScope forward_cost() const = 0;

  const Softmaxed& computed() {
    if (now_.out.defined()) return now_;
    const at::NoGradGuard no_grad;
    const RecomputeScope uncounted;
    if (kept_.out.defined()) {
      const CostScope cost = forward_cost();
      now_ = std::exchange(kept_, {});
    } else {
      now_ = forward();
    }
    return now_;
  }
  // Call when backward is done; after that, only the output may still be needed.
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

  Softmaxed kept_, now_;
  bool taken_ = false, differentiated_ = false;
};

}  // namespace ranklab
