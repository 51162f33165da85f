#include "core/precision/hadamard.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/precision/vector_lanes.h"

namespace ranklab {
namespace {

using Floats = VectorLanes::Float;

// Transforms up to kLaneCount columns of one group of 16 rows: four rounds of sums and differences.
RANKLAB_INLINE void transform_lanes(const float* signs, const float* x, int64_t stride, int64_t count, float* out,
                                    int64_t out_stride) {
  Floats v[kHadamardRows];
  for (int64_t row = 0; row < kHadamardRows; ++row) {
    const float* from = x + row * stride;
    v[row] = (count == kLaneCount ? load_lanes<Floats>(from) : load_lanes<Floats>(from, count)) * signs[row];
  }
  for (int64_t half = 1; half < kHadamardRows; half *= 2) {
    for (int64_t begin = 0; begin < kHadamardRows; begin += 2 * half) {
      for (int64_t i = begin; i < begin + half; ++i) {
        const Floats a = v[i], b = v[i + half];
        v[i] = a + b;
        v[i + half] = a - b;
      }
    }
  }
  for (int64_t row = 0; row < kHadamardRows; ++row) {
    const Floats transformed = v[row] * 0.25F;
    float* to = out + row * out_stride;
    count == kLaneCount ? store_lanes(transformed, to) : store_lanes(transformed, to, count);
  }
}

RANKLAB_CLONES void transform_group(const float* signs, const float* x, int64_t stride, int64_t cols, float* out) {
  for (int64_t col = 0; col < cols; col += kLaneCount)
    transform_lanes(signs, x + col, stride, std::min(kLaneCount, cols - col), out + col, cols);
}

}  // namespace

RandomHadamard::RandomHadamard(uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::kStochasticRounding, "hadamard");
  for (size_t i = 0; i < signs_.size(); ++i) signs_[i] = stream.bits(i) % 2 == 0 ? 1.0F : -1.0F;
}

void RandomHadamard::transform(const MatrixView& x, float* out) const {
  RANKLAB_CHECK(x.rows % kHadamardRows == 0, ErrorKind::kInvalidArgument, .where = "Hadamard transform",
                .what = "rows are transformed in groups of 16", .got = std::to_string(x.rows) + " rows",
                .want = "a multiple of 16", .fix = "add rows of zeros");
  for (int64_t row = 0; row < x.rows; row += kHadamardRows)
    transform_group(signs_.data(), x.data + row * x.stride, x.stride, x.cols, out + row * x.cols);
}

}  // namespace ranklab
