#include "core/precision/scaled_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/precision/recipe.h"

namespace ranklab {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint8_t kE8M0Nan = 255;

bool four_bits(const NumberFormat& format) { return format.bits() <= 4; }

int64_t scale_bytes(ScaleRule rule) {
  return rule == ScaleRule::kFp32 || rule == ScaleRule::kDelayedFp32 ? static_cast<int64_t>(sizeof(float)) : 1;
}

void check_bytes(const char* where, size_t got, int64_t want) {
  RANKLAB_CHECK(got == static_cast<size_t>(want), ErrorKind::kInvalidArgument, .where = where,
                .what = "not the bytes of such a matrix", .got = std::to_string(got), .want = std::to_string(want));
}

// Encodes and decodes scales.
class ScaleCoder {
 public:
  ScaleCoder(const TensorPrecision& precision, float tensor_amax)
      : rule_(precision.scale), maker_(scale_maker(precision, tensor_amax)) {}

  void write(float amax, std::byte* to) const {
    const float scale = make_scale(maker_, amax);
    if (scale_bytes(rule_) > 1) {
      std::memcpy(to, &scale, sizeof scale);
    } else {
      *to = static_cast<std::byte>(rule_ == ScaleRule::kE4M3 ? e4m3_scale_code(maker_, amax)
                                                             : e8m0_scale_code(maker_, amax));
    }
  }

  float read(const std::byte* from) const {
    if (scale_bytes(rule_) > 1) {
      float scale = 0;
      std::memcpy(&scale, from, sizeof scale);
      return scale;
    }
    const auto code = static_cast<uint8_t>(*from);
    if (rule_ != ScaleRule::kE4M3) return code == kE8M0Nan ? kNan : power_of_two(code - kFloatBias);
    const float whole = std::isfinite(maker_.whole) ? maker_.whole : kNan;
    return static_cast<float>(decode(*e4m3(), code)) * whole;
  }

 private:
  ScaleRule rule_;
  ScaleMaker maker_;
};

void write_codes(const RoundingGrid& grid, std::span<const float> rounded, std::byte* to) {
  if (grid.code_bits > 4) {
    for (size_t i = 0; i < rounded.size(); ++i)
      to[i] = static_cast<std::byte>(code_of_rounded<OneLane>(grid, rounded[i]));
    return;
  }
  for (size_t i = 0; i < rounded.size(); i += 2) {
    const uint32_t low = code_of_rounded<OneLane>(grid, rounded[i]);
    const uint32_t high = i + 1 < rounded.size() ? code_of_rounded<OneLane>(grid, rounded[i + 1]) : 0;
    to[i / 2] = static_cast<std::byte>(high << 4 | low);
  }
}

// Offsets in the packed bytes.
struct Form {
  Form(const TensorPrecision& precision, Along along, int64_t rows, int64_t matrix_cols)
      : groups(group_shape(precision, along, rows, matrix_cols)),
        layout(packed_layout(precision, along, rows, matrix_cols)),
        cols(matrix_cols),
        scale_step(scale_bytes(precision.scale)) {}

  int64_t grid_cols() const { return groups.grid_cols(cols); }
  // Offset of the scale of the first group in a row of the grid.
  int64_t scale_offset(int64_t grid_row) const {
    if (layout.row_scale_bytes > 0) return grid_row * layout.row_bytes() + layout.code_bytes;
    return layout.rows * layout.row_bytes() + grid_row * grid_cols() * scale_step;
  }

  GroupShape groups;
  PackedLayout layout;
  int64_t cols, scale_step;
};

// Rounds rows that share the same groups, without applying scales to the result, and writes their codes.
class RowPacker {
 public:
  RowPacker(const MatrixView& x, const Form& form, const NumberFormat& format, const RoundingNoise* noise)
      : x_(x), form_(form), format_(format), grid_(rounding_grid(format)), noise_(noise) {}

  // `scales`: one per group of a row.
  void write(int64_t row, int64_t count, std::span<const BlockScale> scales, std::span<std::byte> out) {
    rounded_.resize(static_cast<size_t>(count * x_.cols));
    RoundingNoise noise;
    if (noise_ != nullptr) {
      noise = *noise_;
      noise.row_numbers = noise.row_numbers.subspan(static_cast<size_t>(row), static_cast<size_t>(count));
    }
    quantize_dequantize({x_.data + row * x_.stride, count, x_.cols, x_.stride}, {count, form_.groups.width}, scales,
                        format_, noise_ != nullptr ? &noise : nullptr, rounded_.data());
    for (int64_t i = 0; i < count; ++i) {
      write_codes(grid_, std::span<const float>(rounded_).subspan(static_cast<size_t>(i * x_.cols)).first(cols()),
                  out.data() + (row + i) * form_.layout.row_bytes());
    }
  }

 private:
  size_t cols() const { return static_cast<size_t>(x_.cols); }

  const MatrixView& x_;
  const Form& form_;
  const NumberFormat& format_;
  RoundingGrid grid_;
  const RoundingNoise* noise_;
  std::vector<float> rounded_;
};

constexpr int64_t kRowsAtOnce = 32;

void read_codes(const std::byte* from, bool packed, const std::array<float, 256>& values, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<size_t>(from[packed ? i / 2 : i]);
    out[i] = values[packed ? (byte >> (i % 2 * 4)) & 15 : byte];
  }
}

}  // namespace

std::array<float, 256> code_values(const NumberFormat& format) {
  std::array<float, 256> values{};
  for (int code = 0; code < format.codes(); ++code)
    values[static_cast<size_t>(code)] = static_cast<float>(decode(format, static_cast<uint8_t>(code)));
  return values;
}

PackedLayout packed_layout(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols) {
  const GroupShape groups = group_shape(precision, along, rows, cols);
  const int64_t of_grid_row = groups.grid_cols(cols) * scale_bytes(precision.scale);
  const bool own_rows = along == Along::kColumns &&
                        (precision.granularity == Granularity::kRow || precision.granularity == Granularity::kTile);
  return {.code_bytes = four_bits(*precision.format) ? (cols + 1) / 2 : cols,
          .row_scale_bytes = own_rows ? of_grid_row : 0,
          .end_scale_bytes = own_rows ? 0 : groups.grid_rows(rows) * of_grid_row,
          .rows = rows};
}

void pack_matrix(const MatrixView& x, const TensorPrecision& precision, Along along, std::span<const float> amax,
                 float tensor_amax, const RoundingNoise* noise, std::span<std::byte> out) {
  const Form form(precision, along, x.rows, x.cols);
  check_bytes("pack_matrix", out.size(), form.layout.bytes());
  const ScaleCoder coder(precision, tensor_amax);
  std::vector<BlockScale> scales(amax.size());
  block_scales(precision, amax, tensor_amax, scales);
  for (BlockScale& scale : scales) scale.scale = 1;  // so that rounding gives the number of the code
  const auto grid_cols = static_cast<size_t>(form.grid_cols());
  RowPacker packer(x, form, *precision.format, noise);
  for (int64_t grid_row = 0; grid_row < form.groups.grid_rows(x.rows); ++grid_row) {
    const size_t first = static_cast<size_t>(grid_row) * grid_cols;
    std::byte* to = out.data() + form.scale_offset(grid_row);
    for (size_t i = 0; i < grid_cols; ++i, to += form.scale_step) coder.write(amax[first + i], to);
    const int64_t begin = grid_row * form.groups.height, end = std::min(begin + form.groups.height, x.rows);
    for (int64_t row = begin; row < end; row += kRowsAtOnce)
      packer.write(row, std::min(kRowsAtOnce, end - row), std::span(scales).subspan(first, grid_cols), out);
  }
}

float pack_matrix(const MatrixView& x, const TensorPrecision& precision, Along along, const RoundingNoise* noise,
                  std::span<std::byte> out) {
  const GroupShape groups = group_shape(precision, along, x.rows, x.cols);
  std::vector<float> amax(static_cast<size_t>(groups.grid_rows(x.rows) * groups.grid_cols(x.cols)));
  group_amax(x, groups, amax);
  float most = 0;
  for (const float one : amax) most = std::isnan(most) || one <= most ? most : one;
  pack_matrix(x, precision, along, amax, most, noise, out);
  return most;
}

void unpack_matrix(std::span<const std::byte> bytes, const TensorPrecision& precision, Along along, int64_t rows,
                   int64_t cols, float tensor_amax, float* out) {
  const Form form(precision, along, rows, cols);
  check_bytes("unpack_matrix", bytes.size(), form.layout.bytes());
  const ScaleCoder coder(precision, tensor_amax);
  const std::array<float, 256> values = code_values(*precision.format);
  std::vector<float> scales(static_cast<size_t>(form.grid_cols()));
  for (int64_t row = 0; row < rows; ++row) {
    if (row % form.groups.height == 0) {
      const std::byte* from = bytes.data() + form.scale_offset(row / form.groups.height);
      for (float& scale : scales) scale = coder.read(std::exchange(from, from + form.scale_step));
    }
    float* to = out + row * cols;
    read_codes(bytes.data() + row * form.layout.row_bytes(), four_bits(*precision.format), values,
               {to, static_cast<size_t>(cols)});
    for (int64_t col = 0, group = 0; col < cols; ++group) {
      const float scale = scales[static_cast<size_t>(group)];
      for (const int64_t end = std::min(col + form.groups.width, cols); col < end; ++col) to[col] *= scale;
    }
  }
}

}  // namespace ranklab
