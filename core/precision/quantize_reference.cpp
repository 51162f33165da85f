#include <algorithm>
#include <cmath>

#include "core/precision/quantize.h"

namespace ranklab {
namespace {

const BlockScale& scale_at(const GroupShape& groups, std::span<const BlockScale> scales, int64_t row, int64_t col,
                           int64_t cols) {
  return scales[static_cast<size_t>(row / groups.height * groups.grid_cols(cols) + col / groups.width)];
}

float round_to_nearest(const NumberFormat& format, float scaled) {
  if (std::isnan(scaled)) return scaled;  // also in formats without a code for NaN
  return static_cast<float>(decode(format, encode(format, scaled)));
}

}  // namespace

GroupShape group_shape(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols) {
  const bool columns = along == Along::kColumns;
  switch (precision.granularity) {
    case Granularity::kTensor:
      return {std::max<int64_t>(rows, 1), std::max<int64_t>(cols, 1)};
    case Granularity::kRow:
      return columns ? GroupShape{1, std::max<int64_t>(cols, 1)} : GroupShape{std::max<int64_t>(rows, 1), 1};
    case Granularity::kTile:
      return columns ? GroupShape{1, precision.block} : GroupShape{precision.block, 1};
    case Granularity::kBlock:
      return {precision.block, precision.block};
  }
  return {};
}

void group_amax_reference(const MatrixView& x, const GroupShape& groups, std::span<float> amax) {
  std::fill(amax.begin(), amax.end(), 0.0F);
  const int64_t grid_cols = groups.grid_cols(x.cols);
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t col = 0; col < x.cols; ++col) {
      float& most = amax[static_cast<size_t>(row / groups.height * grid_cols + col / groups.width)];
      const float size = std::abs(x.data[row * x.stride + col]);
      if (std::isnan(size) || size > most) most = size;  // comparisons with NaN are false, so it stays
    }
  }
}

float round_stochastically(const NumberFormat& format, float scaled, uint32_t bits) {
  if (std::isnan(scaled)) return scaled;
  const auto largest = static_cast<float>(format.largest());
  const float size = std::min(std::abs(scaled), largest);
  // Neighbouring numbers differ by 2 ^ (exponent - mantissa bits).
  int exponent = 0;
  std::frexp(std::max(size, static_cast<float>(format.smallest_normal())), &exponent);
  const float step = std::ldexp(1.0F, exponent - 1 - format.mantissa_bits);
  const float below = std::floor(size / step) * step;
  const float up = (size - below) / step;  // in [0, 1)
  const float chance = static_cast<float>(bits >> 8) * 0x1p-24F;
  return std::copysign(chance < up ? below + step : below, scaled);
}

void quantize_dequantize_reference(const MatrixView& x, const GroupShape& groups, std::span<const BlockScale> scales,
                                   const NumberFormat& format, const RoundingNoise* noise, float* out) {
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t col = 0; col < x.cols; ++col) {
      const BlockScale& group = scale_at(groups, scales, row, col, x.cols);
      const float scaled = x.data[row * x.stride + col] * group.inverse;
      float rounded = 0;
      if (noise == nullptr) {
        rounded = round_to_nearest(format, scaled);
      } else {
        const uint64_t element = noise->row_numbers[static_cast<size_t>(row)] * static_cast<uint64_t>(noise->columns) +
                                 static_cast<uint64_t>(noise->first_column + col);
        rounded = round_stochastically(format, scaled, noise->stream->bits(element));
      }
      out[row * x.cols + col] = rounded * group.scale;
    }
  }
}

}  // namespace ranklab
