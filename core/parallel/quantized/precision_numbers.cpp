#include "core/parallel/quantized/precision_numbers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/trace/precision_event.h"

namespace ranklab {
namespace {

constexpr int kExponentBias = 127, kMantissaBits = 23;

// floor(log2 |x|) of a normal number, and -127 for a subnormal one.
int exponent_of(uint32_t bits) { return static_cast<int>(bits >> kMantissaBits & 0xff) - kExponentBias; }

struct Sums {
  int64_t nonzero = 0, underflow = 0, saturated = 0;
  double signal = 0, noise = 0;
  float amax = 0;
  std::array<int64_t, kPrecisionBins> bins{};
};

void add(Sums& sums, float x, float rounded, float limit) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffU;
  if (bits == 0 || !std::isfinite(x)) return;
  const float size = std::bit_cast<float>(bits);
  ++sums.nonzero;
  sums.underflow += rounded == 0 ? 1 : 0;
  sums.saturated += size > limit ? 1 : 0;
  sums.amax = std::max(sums.amax, size);
  const double wide = x, error = wide - static_cast<double>(rounded);
  sums.signal += wide * wide;
  sums.noise += error * error;
  const int bin = std::clamp(exponent_of(bits) - kPrecisionFirstBin, 0, static_cast<int>(kPrecisionBins) - 1);
  ++sums.bins[static_cast<size_t>(bin)];
}

struct ScaleSums {
  double least = 0, most = 0, mean = 0, deviation = 0;
};

// A scale of 0 marks an all-zero group, which does not count.
ScaleSums sums_of(const std::vector<float>& scales) {
  ScaleSums result;
  double sum = 0, squares = 0, count = 0;
  for (const float one : scales) {
    if (one == 0) continue;
    const auto scale = static_cast<double>(one);
    result.least = count == 0 ? scale : std::min(result.least, scale);
    result.most = std::max(result.most, scale);
    sum += scale;
    squares += scale * scale;
    ++count;
  }
  if (count == 0) return result;
  result.mean = sum / count;
  result.deviation = std::sqrt(std::max(0.0, squares / count - result.mean * result.mean));
  return result;
}

// Adds one piece, and writes the scales of its groups that have nonzero elements to `seen_scales`.
void add_piece(Sums& sums, const NumberFormat& format, const at::Tensor& before, const RoundedOperand& after,
               const OperandPiece& piece, std::vector<float>& seen_scales) {
  const auto largest = static_cast<float>(format.largest());
  const int64_t stride = before.size(1), grid_cols = piece.groups.grid_cols(piece.cols);
  for (int64_t row = 0; row < piece.rows; ++row) {
    const int64_t begin = (piece.row + row) * stride + piece.col;
    const float *x = before.const_data_ptr<float>() + begin, *rounded = after.values.const_data_ptr<float>() + begin;
    const size_t first = piece.first_group + static_cast<size_t>(row / piece.groups.height * grid_cols);
    for (int64_t col = 0; col < piece.cols; ++col) {
      const size_t group = first + static_cast<size_t>(col / piece.groups.width);
      const float scale = after.scales[group].scale;
      if (x[col] != 0) seen_scales[group] = scale;
      add(sums, x[col], rounded[col], scale * largest);
    }
  }
}

}  // namespace

std::vector<double> precision_numbers(const NumberFormat& format, const at::Tensor& before,
                                      const RoundedOperand& after) {
  Sums sums;
  std::vector<float> scales(after.scales.size(), 0.0F);
  for (const OperandPiece& piece : after.pieces) add_piece(sums, format, before, after, piece, scales);
  const OperandPiece& first = after.pieces.at(0);
  const int64_t grid_rows = first.groups.grid_rows(first.rows), grid_cols = first.groups.grid_cols(first.cols);
  const ScaleSums scale = sums_of(scales);
  std::vector<double> numbers(kPrecisionScales);
  const auto set = [&](size_t place, auto value) { numbers[place] = static_cast<double>(value); };
  set(kPrecisionFormatBits, format.exponent_bits * 16 + format.mantissa_bits);
  set(kPrecisionGroupRows, first.groups.height);
  set(kPrecisionGroupCols, first.groups.width);
  set(kPrecisionRows, before.size(0));
  set(kPrecisionCols, before.size(1));
  set(kPrecisionCount, before.numel());
  set(kPrecisionNonzero, sums.nonzero);
  set(kPrecisionUnderflow, sums.underflow);
  set(kPrecisionSaturated, sums.saturated);
  set(kPrecisionSignal, sums.signal);
  set(kPrecisionNoise, sums.noise);
  set(kPrecisionAmax, sums.amax);
  set(kPrecisionScaleMin, scale.least);
  set(kPrecisionScaleMax, scale.most);
  set(kPrecisionScaleMean, scale.mean);
  set(kPrecisionScaleStd, scale.deviation);
  std::ranges::copy(sums.bins, numbers.begin() + kPrecisionHistogram);
  const int64_t shown_rows = std::min<int64_t>(grid_rows, kShownScaleRows);
  const int64_t shown_cols = std::min<int64_t>(grid_cols, kShownScaleCols);
  set(kPrecisionScaleRows, shown_rows);
  set(kPrecisionScaleCols, shown_cols);
  for (int64_t row = 0; row < shown_rows; ++row) {
    for (int64_t col = 0; col < shown_cols; ++col)
      numbers.push_back(static_cast<double>(scales[static_cast<size_t>(row * grid_cols + col)]));
  }
  return numbers;
}

}  // namespace ranklab
