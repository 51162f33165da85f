// Rounds a matrix to a number format, group by group, and reads it back: what a product in few bits sees of it, in
// fp32. Two steps, so that ranks which hold parts of a matrix can agree on the largest magnitudes in between. The fast
// path gives the reference's bits. Torch-free. Cost: two passes. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/precision/block_scale.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

struct MatrixView {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from row to row
};

// Which dimension a product sums over.
enum class Along { kColumns, kRows };

// Groups lie in a grid of ceil(rows / height) x ceil(cols / width), row-major; those at the ends may be smaller.
struct GroupShape {
  int64_t height = 1;
  int64_t width = 1;
  int64_t grid_rows(int64_t rows) const { return (rows + height - 1) / height; }
  int64_t grid_cols(int64_t cols) const { return (cols + width - 1) / width; }
};
GroupShape group_shape(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols);

// Stochastic rounding: the number of element (row, column) is the one that the stream has at
// row_numbers[row] * columns + first_column + column, so that a shard draws what the whole would.
struct RoundingNoise {
  const RandomStream* stream = nullptr;
  std::span<const uint64_t> row_numbers;
  int64_t first_column = 0;
  int64_t columns = 0;
};

// The largest magnitude of each group; NaN when one of its numbers is NaN.
void group_amax(const MatrixView& x, const GroupShape& groups, std::span<float> amax);
// out [rows, cols], dense. `noise` is null to round to nearest. Beyond the largest number of the format, also at
// infinity, it saturates; NaN stays NaN. REQUIRES: a scale for each group; a format with a sign.
void quantize_dequantize(const MatrixView& x, const GroupShape& groups, std::span<const BlockScale> scales,
                         const NumberFormat& format, const RoundingNoise* noise, float* out);

// The same, number by number by encode() and decode().
void group_amax_reference(const MatrixView& x, const GroupShape& groups, std::span<float> amax);
void quantize_dequantize_reference(const MatrixView& x, const GroupShape& groups, std::span<const BlockScale> scales,
                                   const NumberFormat& format, const RoundingNoise* noise, float* out);

// The number that x * inverse is rounded to, given 32 random bits: the neighbours in the format by their distance.
float round_stochastically(const NumberFormat& format, float scaled, uint32_t bits);

}  // namespace ranklab
