// A matrix as bytes: their number, that reading back gives quantize_dequantize()'s bits, and that rows of tiles are
// independent.
#include "core/precision/scaled_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/precision/recipe.h"

namespace ranklab {
namespace {

TensorPrecision in_blocks(const NumberFormat* format, Granularity granularity, int64_t block, ScaleRule rule) {
  return {.format = format, .granularity = granularity, .block = block, .scale = rule};
}

TEST(PackedLayout, CountsCodesAndScales) {
  const auto bytes = [](const TensorPrecision& p, Along along = Along::kColumns) {
    const PackedLayout l = packed_layout(p, along, 100, 300);
    return std::array<int64_t, 4>{l.code_bytes, l.row_scale_bytes, l.end_scale_bytes, l.bytes()};
  };
  using Want = std::array<int64_t, 4>;
  EXPECT_EQ(bytes(in_blocks(e4m3(), Granularity::kTile, 128, ScaleRule::kFp32)), (Want{300, 12, 0, 31200}));
  EXPECT_EQ(bytes(in_blocks(e4m3(), Granularity::kTile, 32, ScaleRule::kE8M0)), (Want{300, 10, 0, 31000}));
  EXPECT_EQ(bytes(in_blocks(e2m1(), Granularity::kTile, 16, ScaleRule::kE4M3)), (Want{150, 19, 0, 16900}));
  EXPECT_EQ(bytes(in_blocks(e4m3(), Granularity::kBlock, 128, ScaleRule::kFp32)), (Want{300, 0, 12, 30012}));
  EXPECT_EQ(bytes(in_blocks(e5m2(), Granularity::kTensor, 0, ScaleRule::kFp32)), (Want{300, 0, 4, 30004}));
  EXPECT_EQ(bytes(in_blocks(e4m3(), Granularity::kRow, 0, ScaleRule::kPowerOfTwo)), (Want{300, 1, 0, 30100}));
  EXPECT_EQ(bytes(in_blocks(e4m3(), Granularity::kTile, 32, ScaleRule::kE8M0), Along::kRows),
            (Want{300, 0, 1200, 31200}));
  EXPECT_EQ(packed_layout(in_blocks(e2m1(), Granularity::kTile, 16, ScaleRule::kE4M3), Along::kColumns, 2, 7).bytes(),
            10);
}

// Magnitudes of many orders, zeros of both signs, a group of zeros, one that is subnormal, two that are not finite.
std::vector<float> wide_range_of_numbers(int64_t rows, int64_t cols, bool finite) {
  std::vector<float> x(static_cast<size_t>(rows * cols));
  RandomStream(6, RandomPurpose::kTest, "x").fill_normal(0, x);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= std::ldexp(1.0F, static_cast<int>(i / 40 % 40) - 20);
  for (size_t i = 0; i < std::min<size_t>(130, x.size()); ++i) x[i] = i % 2 == 0 ? 0.0F : -0.0F;
  for (size_t i = 130; i < std::min<size_t>(400, x.size()); ++i) x[i] *= 0x1p-115F;
  if (!finite && x.size() > 500) {
    x[450] = std::numeric_limits<float>::infinity();
    x.back() = std::numeric_limits<float>::quiet_NaN();
  }
  return x;
}

struct Rounded {
  std::vector<float> amax, values;
  float tensor_amax = 0;
};

Rounded round(const MatrixView& x, const TensorPrecision& precision, Along along, const RoundingNoise* noise) {
  const GroupShape groups = group_shape(precision, along, x.rows, x.cols);
  Rounded r{.amax = std::vector<float>(static_cast<size_t>(groups.grid_rows(x.rows) * groups.grid_cols(x.cols))),
            .values = std::vector<float>(static_cast<size_t>(x.rows * x.cols))};
  group_amax(x, groups, r.amax);
  for (const float one : r.amax)
    r.tensor_amax = std::isnan(r.tensor_amax) || one <= r.tensor_amax ? r.tensor_amax : one;
  std::vector<BlockScale> scales(r.amax.size());
  block_scales(precision, r.amax, r.tensor_amax, scales);
  quantize_dequantize(x, groups, scales, *precision.format, noise, r.values.data());
  return r;
}

void expect_bits(std::span<const float> got, std::span<const float> want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << what << ", element " << i << ": " << got[i] << ", want " << want[i];
  }
}

void expect_round_trip(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols, bool finite) {
  const std::vector<float> data = wide_range_of_numbers(rows, cols, finite);
  const MatrixView x{data.data(), rows, cols, cols};
  std::vector<uint64_t> row_numbers(static_cast<size_t>(rows));
  std::iota(row_numbers.begin(), row_numbers.end(), 7);
  const RandomStream stream(1, RandomPurpose::kStochasticRounding, "x");
  const RoundingNoise noise{&stream, row_numbers, 0, cols};
  for (const RoundingNoise* drawn : {static_cast<const RoundingNoise*>(nullptr), &noise}) {
    const std::string what = std::string(precision.format->name) + " " + std::string(name(precision.granularity)) +
                             " " + std::string(name(precision.scale)) +
                             (along == Along::kRows ? " rows " : " columns ") + std::to_string(rows) + " x " +
                             std::to_string(cols);
    const Rounded want = round(x, precision, along, drawn);
    std::vector<std::byte> bytes(static_cast<size_t>(packed_layout(precision, along, rows, cols).bytes()));
    const float tensor_amax = pack_matrix(x, precision, along, drawn, bytes);
    expect_bits({&tensor_amax, 1}, {&want.tensor_amax, 1}, what);
    std::vector<float> got(want.values.size());
    unpack_matrix(bytes, precision, along, rows, cols, tensor_amax, got.data());
    expect_bits(got, want.values, what);
  }
}

TEST(ScaledMatrix, ReadsBackWhatRoundingGives) {
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    for (const ScaleRule rule :
         {ScaleRule::kFp32, ScaleRule::kPowerOfTwo, ScaleRule::kE8M0, ScaleRule::kE8M0Up, ScaleRule::kE4M3}) {
      for (const auto& [granularity, block] :
           std::initializer_list<std::pair<Granularity, int64_t>>{{Granularity::kTensor, 0},
                                                                  {Granularity::kRow, 0},
                                                                  {Granularity::kTile, 32},
                                                                  {Granularity::kTile, 128},
                                                                  {Granularity::kBlock, 16}}) {
        for (const Along along : {Along::kColumns, Along::kRows}) {
          for (const auto& [rows, cols] :
               std::initializer_list<std::pair<int64_t, int64_t>>{{70, 45}, {3, 256}, {1, 1}, {0, 64}}) {
            for (const bool finite : {true, false})
              expect_round_trip(in_blocks(format, granularity, block, rule), along, rows, cols, finite);
          }
        }
      }
    }
  }
}

// As tokens travel: each row alone, in another order.
TEST(ScaledMatrix, RowsOfTilesStandForThemselves) {
  const int64_t rows = 9, cols = 200;
  const std::vector<float> data = wide_range_of_numbers(rows, cols, true);
  for (const TensorPrecision& precision : {in_blocks(e4m3(), Granularity::kTile, 128, ScaleRule::kFp32),
                                           in_blocks(e4m3(), Granularity::kTile, 32, ScaleRule::kE8M0Up)}) {
    const PackedLayout layout = packed_layout(precision, Along::kColumns, rows, cols);
    std::vector<std::byte> bytes(static_cast<size_t>(layout.bytes())), turned;
    pack_matrix({data.data(), rows, cols, cols}, precision, Along::kColumns, nullptr, bytes);
    std::vector<float> want(data.size()), got(data.size());
    unpack_matrix(bytes, precision, Along::kColumns, rows, cols, 0, want.data());
    for (int64_t row = rows - 1; row >= 0; --row) {
      const auto begin = bytes.begin() + row * layout.row_bytes();
      turned.insert(turned.end(), begin, begin + layout.row_bytes());
    }
    unpack_matrix(turned, precision, Along::kColumns, rows, cols, 0, got.data());
    for (int64_t row = 0; row < rows; ++row) {
      expect_bits(std::span(got).subspan(static_cast<size_t>(row * cols), static_cast<size_t>(cols)),
                  std::span(want).subspan(static_cast<size_t>((rows - 1 - row) * cols), static_cast<size_t>(cols)),
                  "row " + std::to_string(row));
    }
  }
}

TEST(ScaledMatrix, CodesAreThoseOfTheFormat) {
  const std::vector<float> data = {6, -1, 0.5F, 3, -4};
  const TensorPrecision precision = in_blocks(e2m1(), Granularity::kRow, 0, ScaleRule::kE8M0Up);
  std::vector<std::byte> bytes(4);
  pack_matrix({data.data(), 1, 5, 5}, precision, Along::kColumns, nullptr, bytes);
  EXPECT_EQ(bytes, (std::vector<std::byte>{std::byte{0xa7}, std::byte{0x51}, std::byte{0x0e}, std::byte{127}}));
}

TEST(ScaledMatrix, AGroupOfZerosHasScaleOne) {
  const std::vector<float> zeros(4);
  std::vector<std::byte> bytes(5);
  pack_matrix({zeros.data(), 1, 4, 4}, in_blocks(e4m3(), Granularity::kRow, 0, ScaleRule::kE8M0), Along::kColumns,
              nullptr, bytes);
  EXPECT_EQ(bytes.back(), std::byte{127});
}

TEST(ScaledMatrix, BytesOfAnotherMatrixAreRefused) {
  std::vector<std::byte> bytes(100);
  std::vector<float> out(100);
  const TensorPrecision precision = in_blocks(e4m3(), Granularity::kRow, 0, ScaleRule::kFp32);
  EXPECT_THROW(unpack_matrix(bytes, precision, Along::kColumns, 1, 100, 0, out.data()), Error);
}

}  // namespace
}  // namespace ranklab
