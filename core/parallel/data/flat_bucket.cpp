#include "core/parallel/data/flat_bucket.h"

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {

void FlatBucket::allocate(int num_levels) {
  if (flat.defined() && levels.size() >= static_cast<size_t>(num_levels)) return;
  const MemoryScope memory(MemoryCategory::kGradients);
  const NoCostScope no_cost;
  const auto view_of = [](const at::Tensor& whole, const GradSlot& slot) {
    return whole.narrow(0, slot.offset, slot.parameter->data.numel()).view(slot.parameter->data.sizes());
  };
  if (!flat.defined()) {
    flat = at::zeros({layout.elements}, slots[0].parameter->data.options().requires_grad(false).dtype(type));
    for (GradSlot& slot : slots) slot.sum.view = view_of(flat, slot);
  }
  while (levels.size() < static_cast<size_t>(num_levels)) {
    levels.push_back(at::zeros_like(flat));
    for (GradSlot& slot : slots) slot.sum.levels.push_back(view_of(levels.back(), slot));
  }
}

void FlatBucket::release() {
  flat.reset();
  levels.clear();
  for (GradSlot& slot : slots) {
    slot.sum.view.reset();
    slot.sum.levels.clear();
    slot.sum.empty = true;
  }
}

}  // namespace ranklab
