#include "core/precision/rounding_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ranklab {
namespace {

void count(float x, float back, bool saturated, QuantizationError& error) {
  if (std::isnan(back)) return;
  const double size = x, difference = static_cast<double>(back) - size;
  ++error.count;
  error.nonzero += x != 0 ? 1 : 0;
  error.underflow += x != 0 && back == 0 ? 1 : 0;
  error.saturated += saturated ? 1 : 0;
  error.signal += size * size;
  error.noise += difference * difference;
}

}  // namespace

QuantizationError measure_rounding(const MatrixView& x, const TensorPrecision& precision) {
  const GroupShape groups = group_shape(precision, Along::kColumns, x.rows, x.cols);
  const int64_t grid_cols = groups.grid_cols(x.cols);
  std::vector<float> amax(static_cast<size_t>(groups.grid_rows(x.rows) * grid_cols));
  group_amax(x, groups, amax);
  float whole = 0;  // amax over the finite groups
  for (const float one : amax) whole = std::isfinite(one) ? std::max(whole, one) : whole;
  std::vector<BlockScale> scales(amax.size());
  block_scales(precision, amax, whole, scales);
  std::vector<float> back(static_cast<size_t>(x.rows * x.cols));
  quantize_dequantize(x, groups, scales, *precision.format, nullptr, back.data());
  const auto largest = static_cast<float>(precision.format->largest());
  QuantizationError error;
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t col = 0; col < x.cols; ++col) {
      const float number = x.data[row * x.stride + col];
      const float inverse = scales[static_cast<size_t>(row / groups.height * grid_cols + col / groups.width)].inverse;
      // The scale maps amax to the largest number up to its own rounding error, which must not count as saturation.
      const bool saturated = std::abs(number) * inverse > largest * (1 + 0x1p-22F);
      count(number, back[static_cast<size_t>(row * x.cols + col)], saturated, error);
    }
  }
  return error;
}

}  // namespace ranklab
