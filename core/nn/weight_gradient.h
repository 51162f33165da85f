// Allocates the gradient of a weight, which a kernel then writes. Thread rule: its rank's thread.
#pragma once

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

inline at::Tensor empty_gradient(const at::Tensor& weight) {
  const MemoryScope memory(MemoryCategory::kGradients);
  return at::empty_like(weight);
}

}  // namespace ranklab
