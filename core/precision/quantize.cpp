// quantize_dequantize(), vectorized: numbers times their groups' inverse scales, rounded (rounding_grid.h), times the
// scales.
#include "core/precision/quantize.h"

#include <algorithm>
#include <vector>

#include "core/precision/vector_lanes.h"

namespace ranklab {
namespace {

using Floats = VectorLanes::Float;
using Bits = VectorLanes::Bits;

template <bool kStochastic>
RANKLAB_INLINE Floats rounded(const RoundingGrid& grid, Floats scaled, Bits random) {
  if constexpr (kStochastic) return round_stochastic<VectorLanes>(grid, scaled, random);
  return round_nearest<VectorLanes>(grid, scaled);
}

// Rounds numbers of one group.
template <bool kStochastic>
RANKLAB_INLINE void round_run(const RoundingGrid& grid, const BlockScale& group, const float* x, const uint32_t* random,
                              int64_t count, float* out) {
  const Floats scale = Floats{} + group.scale, inverse = Floats{} + group.inverse;
  int64_t i = 0;
  for (; i + kLaneCount <= count; i += kLaneCount) {
    const Bits bits = kStochastic ? load_lanes<Bits>(random + i) : Bits{};
    store_lanes(rounded<kStochastic>(grid, load_lanes<Floats>(x + i) * inverse, bits) * scale, out + i);
  }
  if (i == count) return;
  const Bits bits = kStochastic ? load_lanes<Bits>(random + i, count - i) : Bits{};
  store_lanes(rounded<kStochastic>(grid, load_lanes<Floats>(x + i, count - i) * inverse, bits) * scale, out + i,
              count - i);
}

// Rounds a row with groups of `width`; kWidth: the same if known at compile time, else 0.
template <bool kStochastic, int64_t kWidth>
RANKLAB_INLINE void round_groups(const RoundingGrid& grid, int64_t width, const BlockScale* groups, const float* x,
                                 const uint32_t* random, int64_t cols, float* out) {
  if constexpr (kWidth > 0) width = kWidth;
  const auto bits = [&](int64_t at) { return random + (kStochastic ? at : 0); };
  int64_t col = 0;
  for (; col + width <= cols; col += width, ++groups)
    round_run<kStochastic>(grid, *groups, x + col, bits(col), width, out + col);
  if (col < cols) round_run<kStochastic>(grid, *groups, x + col, bits(col), cols - col, out + col);
}

template <bool kStochastic>
RANKLAB_INLINE void round_wide(const RoundingGrid& grid, int64_t width, const BlockScale* groups, const float* x,
                               const uint32_t* random, int64_t cols, float* out) {
  if (width == 16) return round_groups<kStochastic, 16>(grid, width, groups, x, random, cols, out);
  if (width == 32) return round_groups<kStochastic, 32>(grid, width, groups, x, random, cols, out);
  round_groups<kStochastic, 0>(grid, width, groups, x, random, cols, out);
}

// Rounds a row with one scale per column.
template <bool kStochastic>
RANKLAB_INLINE void round_columns(const RoundingGrid& grid, const float* scale, const float* inverse, const float* x,
                                  const uint32_t* random, int64_t cols, float* out) {
  int64_t i = 0;
  for (; i + kLaneCount <= cols; i += kLaneCount) {
    const Bits bits = kStochastic ? load_lanes<Bits>(random + i) : Bits{};
    const Floats scaled = load_lanes<Floats>(x + i) * load_lanes<Floats>(inverse + i);
    store_lanes(rounded<kStochastic>(grid, scaled, bits) * load_lanes<Floats>(scale + i), out + i);
  }
  if (i == cols) return;
  const int64_t rest = cols - i;
  const Bits bits = kStochastic ? load_lanes<Bits>(random + i, rest) : Bits{};
  const Floats scaled = load_lanes<Floats>(x + i, rest) * load_lanes<Floats>(inverse + i, rest);
  store_lanes(rounded<kStochastic>(grid, scaled, bits) * load_lanes<Floats>(scale + i, rest), out + i, rest);
}

// One function per loop, each compiled for every target machine (RANKLAB_CLONES).
RANKLAB_CLONES void nearest_wide(const RoundingGrid& grid, int64_t width, const BlockScale* groups, const float* x,
                                 int64_t cols, float* out) {
  round_wide<false>(grid, width, groups, x, nullptr, cols, out);
}
RANKLAB_CLONES void stochastic_wide(const RoundingGrid& grid, int64_t width, const BlockScale* groups, const float* x,
                                    const uint32_t* random, int64_t cols, float* out) {
  round_wide<true>(grid, width, groups, x, random, cols, out);
}
RANKLAB_CLONES void nearest_columns(const RoundingGrid& grid, const float* scale, const float* inverse, const float* x,
                                    int64_t cols, float* out) {
  round_columns<false>(grid, scale, inverse, x, nullptr, cols, out);
}
RANKLAB_CLONES void stochastic_columns(const RoundingGrid& grid, const float* scale, const float* inverse,
                                       const float* x, const uint32_t* random, int64_t cols, float* out) {
  round_columns<true>(grid, scale, inverse, x, random, cols, out);
}

RANKLAB_CLONES void split(const BlockScale* __restrict groups, size_t count, float* __restrict scale,
                          float* __restrict inverse) {
  for (size_t i = 0; i < count; ++i) {
    scale[i] = groups[i].scale;
    inverse[i] = groups[i].inverse;
  }
}

// The scales per column for one row of the group grid.
struct ColumnScales {
  explicit ColumnScales(int64_t cols) : scale(static_cast<size_t>(cols)), inverse(static_cast<size_t>(cols)) {}
  void set(int64_t width, const BlockScale* groups) {
    if (width == 1) return split(groups, scale.size(), scale.data(), inverse.data());
    const auto step = static_cast<size_t>(width);
    for (size_t col = 0; col < scale.size(); ++groups) {
      for (const size_t end = std::min(col + step, scale.size()); col < end; ++col) {
        scale[col] = groups->scale;
        inverse[col] = groups->inverse;
      }
    }
  }
  std::vector<float> scale, inverse;
};

void draw(const RoundingNoise& noise, int64_t row, std::span<uint32_t> random) {
  const uint64_t first = noise.row_numbers[static_cast<size_t>(row)] * static_cast<uint64_t>(noise.columns) +
                         static_cast<uint64_t>(noise.first_column);
  noise.stream->fill_bits(first, random);
}

}  // namespace

void quantize_dequantize(const MatrixView& x, const GroupShape& groups, std::span<const BlockScale> scales,
                         const NumberFormat& format, const RoundingNoise* noise, float* out) {
  const RoundingGrid grid = rounding_grid(format);
  const bool wide = groups.width >= std::min(kLaneCount, x.cols);
  std::vector<uint32_t> random(static_cast<size_t>(noise != nullptr ? x.cols : 0));
  ColumnScales columns(wide ? 0 : x.cols);
  for (int64_t row = 0; row < x.rows; ++row) {
    const float* from = x.data + row * x.stride;
    float* to = out + row * x.cols;
    const BlockScale* group = scales.data() + row / groups.height * groups.grid_cols(x.cols);
    if (noise != nullptr) draw(*noise, row, random);
    if (!wide && row % groups.height == 0) columns.set(groups.width, group);
    if (wide && noise == nullptr) {
      nearest_wide(grid, groups.width, group, from, x.cols, to);
    } else if (wide) {
      stochastic_wide(grid, groups.width, group, from, random.data(), x.cols, to);
    } else if (noise == nullptr) {
      nearest_columns(grid, columns.scale.data(), columns.inverse.data(), from, x.cols, to);
    } else {
      stochastic_columns(grid, columns.scale.data(), columns.inverse.data(), from, random.data(), x.cols, to);
    }
  }
}

}  // namespace ranklab
