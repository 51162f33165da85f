// What the elements of a tensor are like, in a few numbers: enough to see weights that are dead, exploded or not
// numbers. NaN and infinity are counted apart and left out of the rest. Cost: two passes over the bytes, sums in fp64.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/checkpoint/tensor_type.h"

namespace ranklab {

struct TensorStats {
  uint64_t elements = 0;
  uint64_t zeros = 0, nans = 0, infinities = 0;
  double mean = 0, std = 0;  // of all elements, not of a sample; 0 without finite ones
  double largest = 0;        // of absolute values
};

TensorStats tensor_stats(TensorType type, std::span<const std::byte> bytes);

}  // namespace ranklab
