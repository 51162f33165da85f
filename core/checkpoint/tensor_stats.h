// Summary statistics of a tensor's elements: enough to spot weights that are dead, exploded or not numbers. NaN and
// infinity are counted separately and excluded from the rest. Cost: two passes over the bytes, sums in fp64. Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/checkpoint/tensor_type.h"

namespace ranklab {

struct TensorStats {
  uint64_t elements = 0;
  uint64_t zeros = 0, nans = 0, infinities = 0;
  double mean = 0, std = 0;  // over all elements, not a sample; 0 without finite ones
  double largest = 0;        // largest absolute value
};

TensorStats tensor_stats(TensorType type, std::span<const std::byte> bytes);

}  // namespace ranklab
