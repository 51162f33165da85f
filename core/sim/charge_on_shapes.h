// Charges the virtual clock for what a CPU would run where a device has a kernel of its own for the same result: the
// CPU's operators, on tensors of the same shapes without memory. So the list of what is charged is the CPU's code, and
// cannot differ from it. Only operators that LibTorch has Meta kernels for. Cost: a few microseconds an operator, and
// nothing where no clock runs or a CostScope is open. Thread rule: its rank's thread.
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
