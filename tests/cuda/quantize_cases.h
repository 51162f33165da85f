// Ways to round a matrix that the GPU's code is held to, and what core/precision makes of each.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/kernels/quantize_body.h"
#include "core/base/numbers/philox.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"

namespace ranklab {

struct QuantizeCase {
  TensorPrecision precision = {};
  int64_t rows = 0, cols = 0;
  std::string name() const {
    return std::string(precision.format->name) + " " + std::string(ranklab::name(precision.granularity)) + " " +
           std::to_string(precision.block) + " " + std::string(ranklab::name(precision.scale)) + ", " +
           std::to_string(rows) + " x " + std::to_string(cols);
  }
};

inline std::vector<QuantizeCase> quantize_cases() {
  std::vector<QuantizeCase> cases;
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{5, 300}, {130, 257}, {1, 16}, {64, 1024}}) {
    for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
      for (const TensorPrecision& p : {
               TensorPrecision{.granularity = Granularity::kTile, .block = 128},
               TensorPrecision{.granularity = Granularity::kBlock, .block = 128},
               TensorPrecision{.granularity = Granularity::kTile, .block = 32, .scale = ScaleRule::kE8M0},
               TensorPrecision{.granularity = Granularity::kTile, .block = 32, .scale = ScaleRule::kE8M0Up},
               TensorPrecision{.granularity = Granularity::kTile, .block = 16, .scale = ScaleRule::kE4M3},
               TensorPrecision{.granularity = Granularity::kBlock, .block = 16, .scale = ScaleRule::kE4M3},
               TensorPrecision{.granularity = Granularity::kRow, .scale = ScaleRule::kPowerOfTwo},
               TensorPrecision{.granularity = Granularity::kTensor},
           }) {
        cases.push_back({p, rows, cols});
        cases.back().precision.format = format;
      }
    }
  }
  return cases;
}

// Many orders of magnitude, zeros, in some cases a number that is not finite; all of them bf16 numbers.
inline std::vector<float> case_numbers(const QuantizeCase& c) {
  std::vector<float> x(static_cast<size_t>(c.rows * c.cols));
  RandomStream(3, RandomPurpose::kTest, "cuda").fill_normal(0, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const float sized = std::ldexp(x[i], static_cast<int>(i / 64 % 50) - 25);
    x[i] = i % 11 == 0 ? 0 : std::bit_cast<float>(std::bit_cast<uint32_t>(sized) & 0xffff0000U);
  }
  if (c.rows == 130 && c.precision.scale != ScaleRule::kE4M3) x[4000] = INFINITY;
  return x;
}

struct Wanted {
  GroupShape groups = {};
  float tensor_amax = 0;
  std::vector<BlockScale> scales = {};
  std::vector<float> values = {};
};

inline Wanted wanted(const QuantizeCase& c, const std::vector<float>& x) {
  const MatrixView view{x.data(), c.rows, c.cols, c.cols};
  Wanted w{.groups = group_shape(c.precision, Along::kColumns, c.rows, c.cols)};
  std::vector<float> amax(static_cast<size_t>(w.groups.grid_rows(c.rows) * w.groups.grid_cols(c.cols)));
  group_amax(view, w.groups, amax);
  for (const float one : amax) w.tensor_amax = std::max(w.tensor_amax, one);
  w.scales.resize(amax.size());
  block_scales(c.precision, amax, w.tensor_amax, w.scales);
  w.values.resize(x.size());
  quantize_dequantize(view, w.groups, w.scales, *c.precision.format, nullptr, w.values.data());
  return w;
}

// What the GPU is asked for; the addresses are the caller's.
template <typename T>
QuantizeTask<T> task_of(const QuantizeCase& c) {
  const GroupShape groups = group_shape(c.precision, Along::kColumns, c.rows, c.cols);
  QuantizeTask<T> task;
  task.rows = c.rows;
  task.cols = task.stride = c.cols;
  task.height = groups.height;
  task.width = groups.width;
  task.grid = rounding_grid(*c.precision.format);
  task.maker = scale_maker(c.precision, 0);
  task.scale_code = c.precision.scale == ScaleRule::kFp32   ? ScaleCode::kFp32
                    : c.precision.scale == ScaleRule::kE4M3 ? ScaleCode::kE4M3
                                                            : ScaleCode::kE8M0;
  task.code_stride = task.grid.code_bits > 4 ? c.cols : (c.cols + 1) / 2;
  task.scale_stride = task.grid_cols() * (task.scale_code == ScaleCode::kFp32 ? 4 : 1);
  return task;
}

// Reads codes and scales back, number by number.
inline std::vector<float> read_back(const QuantizeCase& c, const std::vector<uint8_t>& codes,
                                    const std::vector<uint8_t>& scales, float whole) {
  const QuantizeTask<float> task = task_of<float>(c);
  std::vector<float> values;
  for (int64_t row = 0; row < c.rows; ++row) {
    for (int64_t col = 0; col < c.cols; ++col) {
      const bool small = task.grid.code_bits <= 4;
      const uint8_t byte = codes[static_cast<size_t>(row * task.code_stride + (small ? col / 2 : col))];
      const auto code = static_cast<uint8_t>(small ? byte >> (col % 2 * 4) & 15 : byte);
      const uint8_t* at = scales.data() + row / task.height * task.scale_stride;
      float scale = 0;
      if (task.scale_code == ScaleCode::kFp32) {
        std::memcpy(&scale, at + col / task.width * 4, sizeof scale);
      } else if (task.scale_code == ScaleCode::kE8M0) {
        scale = static_cast<float>(decode(find_number_format("e8m0"), at[col / task.width]));
      } else {
        scale = static_cast<float>(decode(*e4m3(), at[col / task.width])) * whole;
      }
      values.push_back(static_cast<float>(decode(*c.precision.format, code)) * scale);
    }
  }
  return values;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) && !(std::isnan(a[i]) && std::isnan(b[i])))
      return false;
  }
  return true;
}

}  // namespace ranklab
