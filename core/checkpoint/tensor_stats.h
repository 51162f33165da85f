// Summary statistics of a tensor's elements: enough to spot weights that are dead, exploded or not numbers
// (core/base/numbers/value_spread.h). Memory: a few hundred kilobytes besides the bytes. Thread rule: pure.
#pragma once
#include <cstddef>
#include <span>

#include "core/base/numbers/value_spread.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

// Adds the elements that these bytes represent.
void add_elements(ValueSpread& spread, TensorType type, std::span<const std::byte> bytes);
// Statistics of a whole tensor, read in blocks if its source supports that.
ValueSpread tensor_stats(const TensorSource& tensors, const TensorInfo& tensor);

}  // namespace ranklab
