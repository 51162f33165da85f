// Stochastic rounding: only the two neighbours, each as often as its distance says; exact values stay; a shard draws
// what the whole does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"

namespace ranklab {
namespace {

const BlockScale kOne[] = {BlockScale{}};

// Row r of x is rounded with the numbers of row row_numbers[r], columns from first_column on, of a matrix of `columns`.
std::vector<float> round_rows(const NumberFormat* format, const MatrixView& x, std::span<const uint64_t> row_numbers,
                              int64_t first_column, int64_t columns) {
  const RandomStream stream(11, RandomPurpose::kStochasticRounding, "dy");
  const RoundingNoise noise{&stream, row_numbers, first_column, columns};
  std::vector<float> out(static_cast<size_t>(x.rows * x.cols));
  quantize_dequantize(x, {x.rows, x.cols}, kOne, *format, &noise, out.data());
  return out;
}

// Below and above x in the format.
std::pair<double, double> neighbours(const NumberFormat& format, double x) {
  double below = -std::numeric_limits<double>::infinity(), above = -below;
  for (int code = 0; code < format.codes(); ++code) {
    const double value = decode(format, static_cast<uint8_t>(code));
    if (!std::isfinite(value)) continue;
    if (value <= x) below = std::max(below, value);
    if (value >= x) above = std::min(above, value);
  }
  return {below, above};
}

TEST(StochasticRounding, IsUnbiasedAndStaysBetweenTheNeighbours) {
  constexpr int64_t kDraws = 20000;
  const std::vector<uint64_t> row = {0};
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    const auto largest = static_cast<float>(format->largest()), smallest = static_cast<float>(format->smallest());
    const std::vector<float> values = {0.3F * smallest,  -0.5F * smallest, 1.01F * smallest, 1.3F,   -2.9F,
                                       3.14159F,         5.999F,           -0.77F,           0.1F,   0.9F * largest,
                                       -0.99F * largest, 0.013F,           1.999F,           -4.25F, 0.0019F};
    for (const float x : values) {
      const auto [below, above] = neighbours(*format, x);
      const std::vector<float> same(kDraws, x);
      double sum = 0;
      for (const float y : round_rows(format, {same.data(), 1, kDraws, kDraws}, row, 0, kDraws)) {
        ASSERT_TRUE(y == below || y == above) << format->name << " of " << x << ": " << y;
        sum += y;
      }
      const double up = above > below ? (x - below) / (above - below) : 0;
      const double sigma = (above - below) * std::sqrt(up * (1 - up) / kDraws);
      EXPECT_NEAR(sum / kDraws, x, 4 * sigma + 1e-7 * std::abs(x)) << format->name;
    }
  }
}

TEST(StochasticRounding, ExactValuesStayAndLargeOnesSaturate) {
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    std::vector<float> x, want;
    for (int repeat = 0; repeat < 50; ++repeat) {
      for (int code = 0; code < format->codes(); ++code) {
        const auto value = static_cast<float>(decode(*format, static_cast<uint8_t>(code)));
        if (!std::isfinite(value)) continue;
        x.push_back(value);
        want.push_back(value);
      }
      for (const float sign : {1.0F, -1.0F}) {
        for (const float beyond : {1.01F, 100.0F, std::numeric_limits<float>::infinity()}) {
          x.push_back(sign * beyond * static_cast<float>(format->largest()));
          want.push_back(sign * static_cast<float>(format->largest()));
        }
      }
    }
    const auto count = static_cast<int64_t>(x.size());
    const std::vector<float> out = round_rows(format, {x.data(), 1, count, count}, std::vector<uint64_t>{3}, 0, count);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(out[i], want[i]) << format->name;
      EXPECT_EQ(std::signbit(out[i]), std::signbit(want[i])) << format->name << " of " << x[i];
    }
  }
}

TEST(StochasticRounding, AShardDrawsWhatTheWholeDoes) {
  constexpr int64_t kRows = 12, kCols = 70;
  std::vector<float> x(kRows * kCols);
  RandomStream(4, RandomPurpose::kTest, "x").fill_normal(0, x);
  std::vector<uint64_t> numbers(kRows);
  std::iota(numbers.begin(), numbers.end(), 100);
  const std::vector<float> whole = round_rows(e2m1(), {x.data(), kRows, kCols, kCols}, numbers, 0, kCols);
  for (const auto& [row, rows, col, cols] :
       {std::array<int64_t, 4>{0, 12, 35, 35}, {6, 6, 0, 70}, {3, 1, 7, 3}, {5, 7, 21, 49}}) {
    const std::vector<float> part = round_rows(e2m1(), {x.data() + row * kCols + col, rows, cols, kCols},
                                               std::span(numbers).subspan(static_cast<size_t>(row)), col, kCols);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        EXPECT_EQ(part[static_cast<size_t>(r * cols + c)], whole[static_cast<size_t>((row + r) * kCols + col + c)]);
    }
  }
}

TEST(StochasticRounding, RowsAndStreamsDifferFromEachOther) {
  const std::vector<float> x(2000, 1.25F);
  const std::vector<uint64_t> numbers = {0, 1};
  const std::vector<float> out = round_rows(e2m1(), {x.data(), 2, 1000, 1000}, numbers, 0, 1000);
  int same = 0;
  for (size_t i = 0; i < 1000; ++i) same += out[i] == out[1000 + i] ? 1 : 0;
  EXPECT_NEAR(same, 500, 70);
}

}  // namespace
}  // namespace ranklab
