// group_amax(): magnitudes are compared as integers, where NaN is above infinity.
#include <algorithm>

#include "core/precision/quantize.h"
#include "core/precision/vector_lanes.h"

namespace ranklab {
namespace {

using Floats = VectorLanes::Float;
using Bits = VectorLanes::Bits;

RANKLAB_INLINE Bits larger(Bits a, Bits b) { return a > b ? a : b; }
RANKLAB_INLINE Bits size_bits(Floats x) { return VectorLanes::bits(x) & ~kFloatSign; }

RANKLAB_INLINE uint32_t largest_lane(Bits x) {
  static_assert(kLaneCount == 8);
  x = larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
  x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
  x = larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
  return x[0];
}

RANKLAB_INLINE uint32_t largest_of(const float* x, int64_t count) {
  Bits most = {};
  int64_t i = 0;
  for (; i + kLaneCount <= count; i += kLaneCount) most = larger(most, size_bits(load_lanes<Floats>(x + i)));
  if (i < count) most = larger(most, size_bits(load_lanes<Floats>(x + i, count - i)));
  return largest_lane(most);
}

void take(float& amax, uint32_t size) {
  if (size > OneLane::bits(amax)) amax = OneLane::number(size);
}

// For groups along rows. kWidth: their width if it is known at compile time, else 0.
template <int64_t kWidth>
RANKLAB_INLINE void amax_of_rows(const MatrixView& x, const GroupShape& groups, float* amax) {
  const int64_t width = kWidth > 0 ? kWidth : groups.width, grid_cols = groups.grid_cols(x.cols);
  for (int64_t row = 0; row < x.rows; ++row) {
    const float* numbers = x.data + row * x.stride;
    float* group = amax + row / groups.height * grid_cols;
    int64_t col = 0;
    for (; col + width <= x.cols; col += width, ++group) take(*group, largest_of(numbers + col, width));
    if (col < x.cols) take(*group, largest_of(numbers + col, x.cols - col));
  }
}

RANKLAB_CLONES void amax_of_wide_groups(const MatrixView& x, const GroupShape& groups, float* amax) {
  if (groups.width == 16) return amax_of_rows<16>(x, groups, amax);
  if (groups.width == 32) return amax_of_rows<32>(x, groups, amax);
  amax_of_rows<0>(x, groups, amax);
}

// For groups of one column each.
RANKLAB_CLONES void amax_of_columns(const MatrixView& x, int64_t height, float* amax) {
  for (int64_t row = 0; row < x.rows; ++row) {
    const float* numbers = x.data + row * x.stride;
    float* most = amax + row / height * x.cols;
    int64_t col = 0;
    for (; col + kLaneCount <= x.cols; col += kLaneCount)
      store_lanes(larger(load_lanes<Bits>(most + col), size_bits(load_lanes<Floats>(numbers + col))), most + col);
    for (; col < x.cols; ++col) take(most[col], OneLane::bits(numbers[col]) & ~kFloatSign);
  }
}

}  // namespace

void group_amax(const MatrixView& x, const GroupShape& groups, std::span<float> amax) {
  std::fill(amax.begin(), amax.end(), 0.0F);
  if (groups.width == 1) return amax_of_columns(x, groups.height, amax.data());
  amax_of_wide_groups(x, groups, amax.data());
}

}  // namespace ranklab
