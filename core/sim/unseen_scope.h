// While this object is alive, what this thread computes is not charged to any clock or memory book and not recorded by
// autograd. For code that inspects a run's tensors. Thread rule: its thread.
#pragma once
#include <ATen/core/grad_mode.h>

#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {

class UnseenScope {
  NoCostScope free_;
  at::NoGradGuard no_grad_;
  UnbookedScope unbooked_;
};

}  // namespace ranklab
