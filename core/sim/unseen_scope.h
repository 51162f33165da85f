// While alive, what this thread computes shows on no clock and in no book of memory, and autograd does not follow it:
// for those who look at a run's tensors. Thread rule: its thread.
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
