// The per-thread code of quantizing a matrix on a GPU: a thread's part of a group's amax, and of its codes and values.
// Lanes of a team share a group; the kernels (quantize_kernels.cu) add the exchange between lanes, and a test runs the
// same code lane by lane on a CPU. The arithmetic is that of rounding_grid.h and scale_maker.h, so results are
// bit-identical to core/precision/quantize.h. C++17, as used for nvcc. Thread rule: pure except for what it writes.
#pragma once
#include <cstdint>

#include "backends/cuda/kernels/numbers.h"
#include "core/precision/device_rounding.h"
#include "core/precision/rounding_grid.h"
#include "core/precision/scale_maker.h"

namespace ranklab {

struct Bf16Bits {
  uint16_t bits;
};
RANKLAB_EVERYWHERE float widened(float x) { return x; }
RANKLAB_EVERYWHERE float widened(Bf16Bits x) { return OneLane::number(static_cast<uint32_t>(x.bits) << 16); }

// Storage format of scales: fp32 in four bytes, else E8M0 or E4M3 in one.
enum class ScaleCode { kFp32, kE8M0, kE4M3 };

// Pointers are device pointers. Groups form a grid of ceil(rows / height) x ceil(cols / width); for 4-bit formats
// widths are even or the whole row.
template <typename T>
struct QuantizeTask {
  const T* x = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;  // stride: elements from row to row
  int64_t height = 1, width = 1;           // size of a group
  RoundingGrid grid = {};
  ScaleMaker maker = {};
  ScaleCode scale_code = ScaleCode::kFp32;
  const float* tensor_amax = nullptr;  // for kE4M3: maker.whole is derived from it; null: maker.whole is given
  // Results; null: not requested.
  uint8_t* codes = nullptr;
  int64_t code_stride = 0;  // bytes from row to row
  uint8_t* scales = nullptr;
  int64_t scale_stride = 0;  // bytes from one row of the grid to the next
  float* values = nullptr;   // dense: the dequantized values

  RANKLAB_EVERYWHERE int64_t grid_cols() const { return (cols + width - 1) / width; }
  RANKLAB_EVERYWHERE int64_t groups() const { return (rows + height - 1) / height * grid_cols(); }
};

// The task of round_at_once() of device_rounding.h; x is the matrix's.
template <typename T>
QuantizeTask<T> task_at_once(const DeviceMatrix& matrix, const T* x, const RoundingGrid& grid, const ScaleMaker& maker,
                             float* scales, float* values) {
  QuantizeTask<T> task;
  task.x = x;
  task.rows = matrix.rows;
  task.cols = matrix.cols;
  task.stride = matrix.stride;
  task.height = matrix.height;
  task.width = matrix.width;
  task.grid = grid;
  task.maker = maker;
  task.scales = reinterpret_cast<uint8_t*>(scales);
  task.scale_stride = static_cast<int64_t>(sizeof(float)) * task.grid_cols();
  task.values = values;
  return task;
}

// The elements of a group.
struct GroupBounds {
  int64_t row = 0, row_end = 0, col = 0, col_end = 0;
};
template <typename T>
RANKLAB_EVERYWHERE GroupBounds bounds_of(const QuantizeTask<T>& task, int64_t group) {
  const int64_t row = group / task.grid_cols() * task.height, col = group % task.grid_cols() * task.width;
  const int64_t row_end = row + task.height < task.rows ? row + task.height : task.rows;
  const int64_t col_end = col + task.width < task.cols ? col + task.width : task.cols;
  return {row, row_end, col, col_end};
}

// Bits of the largest magnitude among every `lanes`-th element, starting at `lane`. Compared as integers, NaN is above
// infinity.
template <typename T>
RANKLAB_EVERYWHERE uint32_t amax_of_lane(const QuantizeTask<T>& task, int64_t group, int lane, int lanes) {
  const GroupBounds b = bounds_of(task, group);
  const int64_t width = b.col_end - b.col, count = (b.row_end - b.row) * width;
  uint32_t most = 0;
  for (int64_t i = lane; i < count; i += lanes) {
    const int64_t down = rows::row_in_block(i, b.row_end - b.row, width);
    const float x = widened(task.x[(b.row + down) * task.stride + b.col + i - down * width]);
    const uint32_t size = OneLane::bits(x) & ~kFloatSign;
    most = size > most ? size : most;
  }
  return most;
}

template <typename T>
RANKLAB_EVERYWHERE ScaleMaker maker_of(const QuantizeTask<T>& task) {
  ScaleMaker maker = task.maker;
  if (maker.rule == ScaleMaker::Rule::kE4M3 && task.tensor_amax != nullptr)
    maker.whole = whole_scale(maker, *task.tensor_amax);
  return maker;
}

// Called by one lane of the team.
template <typename T>
RANKLAB_EVERYWHERE void write_scale(const QuantizeTask<T>& task, const ScaleMaker& maker, int64_t group, float amax) {
  if (task.scales == nullptr) return;
  const int64_t bytes = task.scale_code == ScaleCode::kFp32 ? 4 : 1;
  uint8_t* to = task.scales + group / task.grid_cols() * task.scale_stride + group % task.grid_cols() * bytes;
  if (task.scale_code == ScaleCode::kE4M3) {
    *to = e4m3_scale_code(maker, amax);
  } else if (task.scale_code == ScaleCode::kE8M0) {
    *to = e8m0_scale_code(maker, amax);
  } else {
    const uint32_t bits = OneLane::bits(make_scale(maker, amax));
    for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(bits >> (8 * i));
  }
}

template <typename T>
RANKLAB_EVERYWHERE uint32_t write_value(const QuantizeTask<T>& task, float scale, float inverse, int64_t row,
                                        int64_t col) {
  const float x = widened(task.x[row * task.stride + col]);
  const float rounded = round_nearest<OneLane>(task.grid, x * inverse);
  if (task.values != nullptr) task.values[row * task.cols + col] = rounded * scale;
  return code_of_rounded<OneLane>(task.grid, rounded);
}

// A lane's part of a group's codes and values: one byte of codes at a time.
template <typename T>
RANKLAB_EVERYWHERE void round_of_lane(const QuantizeTask<T>& task, int64_t group, float scale, int lane, int lanes) {
  const GroupBounds b = bounds_of(task, group);
  const float inverse = inverse_scale(scale);
  const int64_t step = task.grid.code_bits > 4 ? 1 : 2;
  const int64_t width = (b.col_end - b.col + step - 1) / step, count = (b.row_end - b.row) * width;
  for (int64_t i = lane; i < count; i += lanes) {
    const int64_t down = rows::row_in_block(i, b.row_end - b.row, width), row = b.row + down,
                  col = b.col + (i - down * width) * step;
    uint32_t code = write_value(task, scale, inverse, row, col);
    if (step == 2 && col + 1 < b.col_end) code |= write_value(task, scale, inverse, row, col + 1) << 4;
    if (task.codes != nullptr) task.codes[row * task.code_stride + col / step] = static_cast<uint8_t>(code);
  }
}

}  // namespace ranklab
