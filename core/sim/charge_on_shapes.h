// Charges the virtual clock for the operators that a CPU would run, in places where a device has its own kernel for the
// same result. The CPU's code runs on tensors of the same shapes without memory, so what is charged cannot differ from
// that code. Works only for operators for which LibTorch has Meta kernels. Cost: a few microseconds per operator, and
// nothing if no clock runs or a CostScope is open. Thread rule: its rank's thread.
#pragma once
#include <utility>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {

inline at::Tensor shape_of(const at::Tensor& x, at::ScalarType type) {
  return at::empty_strided(x.sizes(), x.strides(), x.options().device(at::kMeta).dtype(type));
}
inline at::Tensor shape_of(const at::Tensor& x) { return shape_of(x, x.scalar_type()); }

template <typename Chain>
void charge_on_shapes(Chain&& chain) {
  if (!charges_ops()) return;
  const UnbookedScope unbooked;
  std::forward<Chain>(chain)();
}

}  // namespace ranklab
