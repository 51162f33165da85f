// Quantizes a matrix group by group and dequantizes it to fp32: the values that a quantized product sees. Two steps, so
// that ranks that hold parts of a matrix can agree on the amax in between. The fast path is bitwise equal to the
// reference. Torch-free. Cost: two passes. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/numbers/philox.h"
#include "core/precision/block_scale.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

struct MatrixView {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from row to row
};

// The dimension that a product sums over.
enum class Along { kColumns, kRows };

// Groups form a row-major grid of ceil(rows / height) x ceil(cols / width); the last ones may be smaller.
struct GroupShape {
  int64_t height = 1;
  int64_t width = 1;
  int64_t grid_rows(int64_t rows) const { return (rows + height - 1) / height; }
  int64_t grid_cols(int64_t cols) const { return (cols + width - 1) / width; }
};
GroupShape group_shape(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols);

// Stochastic rounding: element (row, column) uses the stream's number at row_numbers[row] * columns + first_column +
// column, so that a shard draws the same numbers as the whole matrix.
struct RoundingNoise {
  const RandomStream* stream = nullptr;
  std::span<const uint64_t> row_numbers;
  int64_t first_column = 0;
  int64_t columns = 0;
};

// The amax of each group; NaN if one of its numbers is NaN.
void group_amax(const MatrixView& x, const GroupShape& groups, std::span<float> amax);
// out [rows, cols], dense. `noise` null: round to nearest. Numbers beyond the format's largest, also infinity,
// saturate; NaN stays NaN. REQUIRES: one scale per group; a signed format.
void quantize_dequantize(const MatrixView& x, const GroupShape& groups, std::span<const BlockScale> scales,
                         const NumberFormat& format, const RoundingNoise* noise, float* out);

// The same computations for one number at a time with encode() and decode(), as the reference.
void group_amax_reference(const MatrixView& x, const GroupShape& groups, std::span<float> amax);
void quantize_dequantize_reference(const MatrixView& x, const GroupShape& groups, std::span<const BlockScale> scales,
                                   const NumberFormat& format, const RoundingNoise* noise, float* out);

// Rounds x * inverse to one of its neighbours in the format, each with a probability that follows from its distance,
// given 32 random bits.
float round_stochastically(const NumberFormat& format, float scaled, uint32_t bits);

}  // namespace ranklab
