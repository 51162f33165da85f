// How the row kernels handle 16-bit tensors: blocks of rows are widened to fp32, processed by the fp32 loop, and
// rounded when they are stored. Internal to core/nn; torch-free. Cost: two passes over a block that stays in cache.
// Thread rule: pure functions; scratch belongs to the caller.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/nn/kernels/kernel_lanes.h"
#include "core/nn/kernels/row_kernels_16bit.h"

namespace ranklab::kernels {

template <typename T>
void widen_all(const T* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = widen(from[i]);
}
template <typename T>
void narrow_all(const float* from, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) narrow(from[i], to[i]);
}

template <typename T>
std::vector<float> widened(const T* from, int64_t count, double offset = 0) {
  std::vector<float> result(static_cast<size_t>(count));
  widen_all(from, result.data(), count);
  if (offset == 0) return result;
  for (float& value : result) value += static_cast<float>(offset);
  return result;
}

// Calls block(first row, rows) for kGradBlockRows rows at a time, the block size in which a weight's gradient is
// summed.
template <typename F>
void for_blocks(int64_t rows, const F& block) {
  for (int64_t row = 0; row < rows; row += kGradBlockRows) block(row, std::min(kGradBlockRows, rows - row));
}

// The fp32 rows of one block.
class Scratch {
 public:
  explicit Scratch(int64_t cols) : rows_(static_cast<size_t>(kGradBlockRows * cols)) {}
  float* data() { return rows_.data(); }
  template <typename T>
  float* filled(const T* from, int64_t count) {
    widen_all(from, data(), count);
    return data();
  }

 private:
  std::vector<float> rows_;
};

}  // namespace ranklab::kernels
