// The per-thread code of each step of device_rounding.h. The kernels (operand_kernels.cu) distribute groups, elements
// and rows over threads; a test runs the same code in loops on a CPU. C++17, as used for nvcc. Thread rule: pure except
// for what it writes.
#pragma once
#include <cstdint>

#include "core/precision/device_rounding.h"

namespace ranklab {

RANKLAB_EVERYWHERE float number_at(const DeviceMatrix& m, int64_t row, int64_t col) {
  const int64_t i = row * m.stride + col;
  if (!m.bf16) return static_cast<const float*>(m.x)[i];
  return OneLane::number(static_cast<uint32_t>(static_cast<const uint16_t*>(m.x)[i]) << 16);
}

RANKLAB_EVERYWHERE int64_t quotient(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
}

// Bits of the largest magnitude among every `lanes`-th element of a group from `lane` on; at most infinity's. As
// integers magnitudes are ordered as numbers, with NaN above infinity.
RANKLAB_EVERYWHERE uint32_t amax_of_share(const DeviceMatrix& m, int64_t group, int64_t lane, int64_t lanes) {
  const int64_t row = group / m.grid_cols() * m.height, col = group % m.grid_cols() * m.width;
  const int64_t height = row + m.height < m.rows ? m.height : m.rows - row;
  const int64_t width = col + m.width < m.cols ? m.width : m.cols - col;
  uint32_t most = 0;
  for (int64_t i = lane; i < height * width; i += lanes) {
    // 64-bit divisions cost more than the read.
    const int64_t down = height == 1 ? 0 : (width == 1 ? i : quotient(i, width));
    const uint32_t size = OneLane::bits(number_at(m, row + down, col + i - down * width)) & ~kFloatSign;
    most = size > most ? size : most;
  }
  return most < kFloatExponent ? most : kFloatExponent;
}

RANKLAB_EVERYWHERE ScaleMaker maker_of_tensor(ScaleMaker maker, const float* tensor_amax) {
  if (maker.rule == ScaleMaker::Rule::kE4M3) maker.whole = whole_scale(maker, *tensor_amax);
  return maker;
}

RANKLAB_EVERYWHERE void round_element(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales,
                                      const DeviceNoise& noise, const DeviceRounded& out, int64_t row, int64_t col) {
  const float scale =
      scales[quotient(row, m.height) * quotient(m.cols + m.width - 1, m.width) + quotient(col, m.width)];
  const float scaled = number_at(m, row, col) * (scale == 0 ? 0.0F : 1 / scale);
  float rounded = 0;
  if (noise.row_numbers == nullptr) {
    rounded = round_nearest<OneLane>(grid, scaled);
  } else {
    const uint64_t element =
        noise.row_numbers[row] * static_cast<uint64_t>(noise.columns) + static_cast<uint64_t>(noise.first_column + col);
    rounded = round_stochastic<OneLane>(grid, scaled, philox_bits(noise.key, element));
  }
  const int64_t at = row * out.stride + col;
  if (out.values != nullptr) out.values[at] = rounded * scale;
  if (out.codes != nullptr) out.codes[at] = static_cast<uint8_t>(code_of_rounded<OneLane>(grid, rounded));
}

// FNV-1a of the row's fp32 bytes, lowest first.
RANKLAB_EVERYWHERE uint64_t hash_of_row(const DeviceMatrix& m, int64_t row) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (int64_t col = 0; col < m.cols; ++col) {
    const uint32_t bits = OneLane::bits(number_at(m, row, col));
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace ranklab
