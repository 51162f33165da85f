// Groups of a matrix and the effect of rounding them: the plain quantizer's values, and that the fast one gives the
// same bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"
#include "tests/precision/special_numbers.h"

namespace ranklab {
namespace {

struct Matrix {
  int64_t rows = 0, cols = 0, stride = 0;
  std::vector<float> data = {};
  Matrix(int64_t r, int64_t c, int64_t gap = 0)
      : rows(r), cols(c), stride(c + gap), data(static_cast<size_t>(r * stride)) {}
  float& at(int64_t row, int64_t col) { return data[static_cast<size_t>(row * stride + col)]; }
  MatrixView view() const { return {data.data(), rows, cols, stride}; }
};

Matrix normal_matrix(int64_t rows, int64_t cols, float deviation = 1, int64_t gap = 0) {
  Matrix m(rows, cols, gap);
  RandomStream(5, RandomPurpose::kTest, "matrix").fill_normal(0, m.data);
  for (float& x : m.data) x *= deviation;
  return m;
}

float largest(std::span<const float> amax) {
  float most = 0;
  for (const float one : amax) most = std::isnan(one) || one > most ? one : most;
  return most;
}

std::vector<float> amax_of(const Matrix& m, const GroupShape& groups) {
  std::vector<float> amax(static_cast<size_t>(groups.grid_rows(m.rows) * groups.grid_cols(m.cols)));
  group_amax(m.view(), groups, amax);
  return amax;
}

std::vector<float> rounded(const Matrix& m, const TensorPrecision& precision, Along along,
                           const RoundingNoise* noise = nullptr) {
  const GroupShape groups = group_shape(precision, along, m.rows, m.cols);
  const std::vector<float> amax = amax_of(m, groups);
  std::vector<BlockScale> scales(amax.size());
  block_scales(precision, amax, largest(amax), scales);
  std::vector<float> out(static_cast<size_t>(m.rows * m.cols));
  quantize_dequantize(m.view(), groups, scales, *precision.format, noise, out.data());
  return out;
}

TensorPrecision tiles(const NumberFormat* format, int64_t block, ScaleRule rule = ScaleRule::kFp32) {
  return {.format = format, .granularity = Granularity::kTile, .block = block, .scale = rule};
}

TEST(GroupShape, FollowsGranularityAndDirection) {
  const auto shape = [](Granularity granularity, Along along) {
    const GroupShape g = group_shape({.format = e4m3(), .granularity = granularity, .block = 128}, along, 300, 200);
    return std::array<int64_t, 4>{g.height, g.width, g.grid_rows(300), g.grid_cols(200)};
  };
  using Want = std::array<int64_t, 4>;
  EXPECT_EQ(shape(Granularity::kTensor, Along::kColumns), (Want{300, 200, 1, 1}));
  EXPECT_EQ(shape(Granularity::kRow, Along::kColumns), (Want{1, 200, 300, 1}));
  EXPECT_EQ(shape(Granularity::kRow, Along::kRows), (Want{300, 1, 1, 200}));
  EXPECT_EQ(shape(Granularity::kTile, Along::kColumns), (Want{1, 128, 300, 2}));
  EXPECT_EQ(shape(Granularity::kTile, Along::kRows), (Want{128, 1, 3, 200}));
  EXPECT_EQ(shape(Granularity::kBlock, Along::kRows), (Want{128, 128, 3, 2}));
}

TEST(GroupAmax, TailsAndNan) {
  Matrix m(3, 5);
  for (size_t i = 0; i < m.data.size(); ++i) m.data[i] = -static_cast<float>(i);
  EXPECT_EQ(amax_of(m, {1, 2}), (std::vector<float>{1, 3, 4, 6, 8, 9, 11, 13, 14}));
  EXPECT_EQ(amax_of(m, {2, 2}), (std::vector<float>{6, 8, 9, 11, 13, 14}));
  EXPECT_EQ(amax_of(m, {2, 1}), (std::vector<float>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  m.at(1, 1) = -kNan;
  m.at(1, 2) = -kInfinity;
  const std::vector<float> amax = amax_of(m, {2, 2});
  EXPECT_TRUE(std::isnan(amax[0]));
  EXPECT_EQ(amax[1], kInfinity);
  EXPECT_EQ(amax[2], 9);
}

// The example of a block worked out by hand: amax 5, floor rule: scale 2^(2 - 2) = 1.
TEST(Quantizer, Mxfp4OfABlock) {
  Matrix m(1, 32);
  const std::vector<std::pair<float, float>> cases = {{5, 4},        {-2.4F, -2},   {0.25F, 0},
                                                      {0.26F, 0.5F}, {-0.75F, -1},  {3.5F, 4},
                                                      {2.5F, 2},     {1.75F, 2.0F}, {-0.2F, -0.0F}};
  for (size_t i = 0; i < cases.size(); ++i) m.data[i] = cases[i].first;
  const std::vector<float> out = rounded(m, tiles(e2m1(), 32, ScaleRule::kE8M0), Along::kColumns);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(out[i], cases[i].second) << cases[i].first;
    EXPECT_EQ(std::signbit(out[i]), std::signbit(cases[i].first)) << cases[i].first;
  }
}

TEST(Quantizer, E8m0FloorSaturatesAndUpDoesNot) {
  Matrix m(1, 32);
  m.data[0] = 500;
  m.data[1] = 1;
  EXPECT_EQ(rounded(m, tiles(e4m3(), 32, ScaleRule::kE8M0), Along::kColumns)[0], 448);
  EXPECT_EQ(rounded(m, tiles(e4m3(), 32, ScaleRule::kE8M0Up), Along::kColumns)[0], 512);
}

TEST(Quantizer, AGroupThatIsNotFiniteBecomesNanAndItsNeighboursDoNot) {
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      Matrix m = normal_matrix(4, 96);
      m.at(1, 40) = bad;
      const std::vector<float> out = rounded(m, tiles(format, 32, ScaleRule::kE8M0Up), Along::kColumns);
      for (int64_t row = 0; row < 4; ++row) {
        for (int64_t col = 0; col < 96; ++col)
          EXPECT_EQ(std::isnan(out[static_cast<size_t>(row * 96 + col)]), row == 1 && col / 32 == 1) << format->name;
      }
    }
  }
}

TEST(Quantizer, ZerosKeepTheirSigns) {
  Matrix m(2, 16);
  m.data[3] = -0.0F;
  m.at(1, 2) = -0.0F;
  m.at(1, 5) = 7;
  const std::vector<float> out = rounded(m, tiles(e4m3(), 16), Along::kColumns);
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], m.data[i]);
    EXPECT_EQ(std::signbit(out[i]), std::signbit(m.data[i])) << i;
  }
}

// Groups of subnormal fp32 numbers keep what 2^-126 and 2^-127 can express.
TEST(Quantizer, SubnormalMagnitudes) {
  Matrix m(1, 32);
  m.data[0] = 0x1p-127F;
  m.data[1] = 0x1p-149F;
  EXPECT_EQ(rounded(m, tiles(e4m3(), 32), Along::kColumns)[0], 0x1p-127F);
  EXPECT_EQ(rounded(m, tiles(e4m3(), 32), Along::kColumns)[1], 0);
  EXPECT_EQ(rounded(m, tiles(e2m1(), 32, ScaleRule::kE8M0), Along::kColumns)[0], 0x1p-127F);
}

// Already in the format: nothing changes.
TEST(Quantizer, IsIdempotentWithPowersOfTwo) {
  const Matrix m = normal_matrix(64, 96, 0.03F);
  for (const ScaleRule rule : {ScaleRule::kE8M0Up, ScaleRule::kPowerOfTwo, ScaleRule::kE8M0}) {
    Matrix once = m;
    once.data = rounded(m, tiles(e4m3(), 32, rule), Along::kRows);
    EXPECT_EQ(rounded(once, tiles(e4m3(), 32, rule), Along::kRows), once.data) << name(rule);
  }
}

// ecosystem.md, lesson 13: of normal numbers a block of 16 with an exact scale loses about 6.7 %, a block of 32 with a
// power-of-two scale about 8.7 %.
TEST(Quantizer, ShareThatFourBitsRoundToZero) {
  const Matrix m = normal_matrix(1000, 320);
  const auto lost = [&](int64_t block, ScaleRule rule) {
    double zeros = 0;
    for (const float x : rounded(m, tiles(e2m1(), block, rule), Along::kColumns)) zeros += x == 0 ? 1 : 0;
    return 100 * zeros / static_cast<double>(m.data.size());
  };
  EXPECT_NEAR(lost(16, ScaleRule::kFp32), 6.7, 0.15);
  EXPECT_NEAR(lost(16, ScaleRule::kE4M3), 6.7, 0.2);
  EXPECT_NEAR(lost(32, ScaleRule::kE8M0), 8.7, 0.2);
}

// Numbers that test every decision: each exponent, the formats' codes and the middles between them, specials.
void fill_edges(const NumberFormat& format, std::vector<float>& data) {
  const RandomStream stream(9, RandomPurpose::kTest, "edges");
  for (size_t i = 0; i < data.size(); ++i) {
    const uint32_t bits = stream.bits(i);
    const double code = decode(format, static_cast<uint8_t>(bits % static_cast<uint32_t>(format.codes())));
    const double next = decode(format, static_cast<uint8_t>((bits + 1) % static_cast<uint32_t>(format.codes())));
    switch (bits >> 28) {
      case 0:
        data[i] = std::bit_cast<float>(stream.bits(i + data.size()));
        break;  // also NaN
      case 1:
        data[i] = static_cast<float>((code + next) / 2);
        break;
      case 2:
        data[i] = std::nextafter(static_cast<float>((code + next) / 2), 1e9F);
        break;
      case 3:
        data[i] = std::bit_cast<float>(bits & 0x807fffffU);
        break;  // fp32 subnormals
      case 4:
        data[i] = bits % 2 == 0 ? 0.0F : -0.0F;
        break;
      case 5:
        data[i] = std::ldexp(1.0F + static_cast<float>(bits % 1024) / 1024, static_cast<int>(i % 254) - 126);
        break;
      default:
        data[i] = static_cast<float>(code) * (1 + static_cast<float>(bits % 7) / 64);
    }
  }
}

std::vector<uint64_t> counting(int64_t rows, uint64_t first) {
  std::vector<uint64_t> numbers(static_cast<size_t>(rows));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + 3 * i;
  return numbers;
}

void expect_same_bits(std::span<const float> fast, std::span<const float> plain, const std::string& what) {
  for (size_t i = 0; i < fast.size(); ++i) {
    if (std::isnan(fast[i]) && std::isnan(plain[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(fast[i]), std::bit_cast<uint32_t>(plain[i]))
        << what << ", element " << i << ": " << fast[i] << ", want " << plain[i];
  }
}

// Scales computed from amax, and scales unrelated to the numbers.
void expect_fast_is_plain(const Matrix& m, const TensorPrecision& precision, Along along, bool stochastic) {
  const GroupShape groups = group_shape(precision, along, m.rows, m.cols);
  const std::string what = std::string(precision.format->name) + " " + std::string(name(precision.granularity)) + " " +
                           std::to_string(precision.block) + (along == Along::kRows ? " rows " : " columns ") +
                           std::to_string(m.rows) + " x " + std::to_string(m.cols);
  std::vector<float> amax = amax_of(m, groups), plain_amax(amax.size());
  group_amax_reference(m.view(), groups, plain_amax);
  expect_same_bits(amax, plain_amax, "amax " + what);
  const std::vector<uint64_t> rows = counting(m.rows, 1U << 20);
  const RandomStream stream(2, RandomPurpose::kStochasticRounding, "x");
  const RoundingNoise noise{&stream, rows, 5, m.cols + 9};
  for (const bool own_scales : {true, false}) {
    std::vector<BlockScale> scales(amax.size());
    for (size_t i = 0; i < amax.size(); ++i) {
      scales[i] = own_scales ? block_scale(precision, amax[i], largest(amax))
                             : BlockScale{static_cast<float>(i % 5 + 1), 1.0F / static_cast<float>(i % 5 + 1)};
    }
    std::vector<float> fast(static_cast<size_t>(m.rows * m.cols)), plain = fast;
    const RoundingNoise* drawn = stochastic ? &noise : nullptr;
    quantize_dequantize(m.view(), groups, scales, *precision.format, drawn, fast.data());
    quantize_dequantize_reference(m.view(), groups, scales, *precision.format, drawn, plain.data());
    expect_same_bits(fast, plain, what);
  }
}

TEST(FastQuantizer, HasThePlainOnesBits) {
  const std::vector<std::pair<int64_t, int64_t>> shapes = {{1, 1}, {1, 15}, {3, 17}, {130, 129}, {33, 300}, {256, 48}};
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    for (const auto& [rows, cols] : shapes) {
      Matrix m(rows, cols, 3);
      fill_edges(*format, m.data);
      for (const auto& [granularity, block] :
           std::initializer_list<std::pair<Granularity, int64_t>>{{Granularity::kTensor, 0},
                                                                  {Granularity::kRow, 0},
                                                                  {Granularity::kTile, 128},
                                                                  {Granularity::kTile, 32},
                                                                  {Granularity::kTile, 16},
                                                                  {Granularity::kTile, 6},
                                                                  {Granularity::kBlock, 128},
                                                                  {Granularity::kBlock, 16},
                                                                  {Granularity::kBlock, 5}}) {
        for (const Along along : {Along::kColumns, Along::kRows}) {
          for (const bool stochastic : {false, true})
            expect_fast_is_plain(m, {.format = format, .granularity = granularity, .block = block}, along, stochastic);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
