// Hopper's sums: the fast loops against the rule written out in double precision, and the figures of DeepSeek-V3.
#include "core/precision/hopper_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/precision/recipe.h"

namespace ranklab {
namespace {

// Numbers of a format, as a tensor core reads them.
std::vector<float> representable(const NumberFormat* format, int64_t rows, int64_t cols, const char* name,
                                 float deviation) {
  std::vector<float> x(static_cast<size_t>(rows * cols)), out(x.size());
  RandomStream(2, RandomPurpose::kTest, name).fill_normal(0, x);
  for (float& one : x) one *= deviation;
  const BlockScale one[] = {BlockScale{}};
  quantize_dequantize({x.data(), rows, cols, cols}, {rows, cols}, one, *format, nullptr, out.data());
  return out;
}

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent - 1;
}
double cut(double x, int least_exponent) {
  return std::ldexp(std::trunc(std::ldexp(x, -least_exponent)), least_exponent);
}

// The sum so far and up to 32 products, as the paper says it.
double plain_step(double sum, const float* a, const float* b, int64_t count) {
  double most = std::abs(sum);
  for (int64_t k = 0; k < count; ++k)
    most = std::max(most, std::abs(static_cast<double>(a[k]) * static_cast<double>(b[k])));
  if (most == 0) return 0;
  const int unit = exponent_of(most) - 13;
  double total = cut(sum, unit);
  for (int64_t k = 0; k < count; ++k) total += cut(static_cast<double>(a[k]) * static_cast<double>(b[k]), unit);
  return total == 0 ? 0 : cut(total, exponent_of(std::abs(total)) - 13);
}

float plain_sum(const float* a, const float* b, int64_t depth, int64_t part) {
  float result = 0;
  for (int64_t begin = 0; begin < depth; begin += part) {
    double sum = 0;
    const int64_t end = std::min(begin + part, depth);
    for (int64_t k = begin; k < end; k += 32) sum = plain_step(sum, a + k, b + k, std::min<int64_t>(32, end - k));
    result += static_cast<float>(sum);
  }
  return result;
}

TEST(HopperSum, IsTheRuleWrittenOut) {
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    for (const float deviation : {1.0F, 0.02F, 60.0F}) {
      const int64_t m = 5, n = 19, depth = 300;
      const std::vector<float> a = representable(format, m, depth, "a", deviation);
      const std::vector<float> b = representable(format, n, depth, "b", 1);
      for (const bool promote : {false, true}) {
        std::vector<float> out(static_cast<size_t>(m * n));
        hopper_gemm({{a.data(), m, depth, depth}}, {{b.data(), n, depth, depth}}, promote, out.data());
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(out[static_cast<size_t>(i * n + j)],
                      plain_sum(a.data() + i * depth, b.data() + j * depth, depth, promote ? 128 : depth))
                << format->name << " " << deviation << " " << i << ", " << j;
        }
      }
    }
  }
}

// By hand: beside 1 a product keeps 13 bits below the point, beside 8192 none.
TEST(HopperSum, SmallProductsAreCutOff) {
  const auto sum = [](std::vector<float> a, bool promote) {
    a.resize(256);
    const std::vector<float> ones(256, 1);
    float out = 0;
    hopper_gemm({{a.data(), 1, 256, 256}}, {{ones.data(), 1, 256, 256}}, promote, &out);
    return out;
  };
  EXPECT_EQ(sum({1, 0x1p-13F}, false), 1 + 0x1p-13F);
  EXPECT_EQ(sum({1, 0x1p-14F, 0x1p-14F}, false), 1);
  EXPECT_EQ(sum({-1, 0x1p-14F}, false), -1) << "toward zero";
  std::vector<float> far(256);
  far[0] = 8192;
  for (size_t i = 128; i < 256; ++i) far[i] = 0.5F;
  EXPECT_EQ(sum(far, false), 8192);
  EXPECT_EQ(sum(far, true), 8192 + 64) << "promoted: the second 128 have a sum of their own";
}

// Section 3.5.2: "nearly 2 %" at K = 4096, here relative to the sums' usual size.
TEST(HopperSum, LosesAboutAPercentAt4096AndPromotionBringsItBack) {
  const int64_t m = 32, n = 32, depth = 4096;
  const std::vector<float> a = representable(e4m3(), m, depth, "a", 1), b = representable(e4m3(), n, depth, "b", 1);
  const auto largest_error = [&](bool promote) {
    std::vector<float> out(static_cast<size_t>(m * n));
    hopper_gemm({{a.data(), m, depth, depth}}, {{b.data(), n, depth, depth}}, promote, out.data());
    double error = 0, squares = 0;
    for (int64_t i = 0; i < m * n; ++i) {
      double want = 0;
      for (int64_t k = 0; k < depth; ++k)
        want += static_cast<double>(a[static_cast<size_t>(i / n * depth + k)]) *
                static_cast<double>(b[static_cast<size_t>(i % n * depth + k)]);
      error = std::max(error, std::abs(static_cast<double>(out[static_cast<size_t>(i)]) - want));
      squares += want * want;
    }
    return error / std::sqrt(squares / static_cast<double>(m * n));
  };
  const double plain = largest_error(false), promoted = largest_error(true);
  EXPECT_GT(plain, 0.005);
  EXPECT_LT(plain, 0.02);
  EXPECT_LT(promoted, plain / 10);
}

TEST(HopperSum, ScalesAreAppliedToSumsOf128) {
  const int64_t m = 3, n = 10, depth = 256;
  std::vector<float> x(static_cast<size_t>(m * depth)), w(static_cast<size_t>(n * depth));
  RandomStream(5, RandomPurpose::kTest, "x").fill_normal(0, x);
  RandomStream(5, RandomPurpose::kTest, "w").fill_normal(0, w);
  struct Side {
    std::vector<float> values = {}, plain = {};
    std::vector<BlockScale> scales = {};
    GroupShape groups = {};
  };
  const auto rounded = [&](const std::vector<float>& data, int64_t rows, Granularity granularity) {
    const TensorPrecision precision{.format = e4m3(), .granularity = granularity, .block = 128};
    Side side{.values = std::vector<float>(data.size()), .plain = std::vector<float>(data.size())};
    side.groups = group_shape(precision, Along::kColumns, rows, depth);
    std::vector<float> amax(static_cast<size_t>(side.groups.grid_rows(rows) * side.groups.grid_cols(depth)));
    const MatrixView view{data.data(), rows, depth, depth};
    group_amax(view, side.groups, amax);
    side.scales.resize(amax.size());
    block_scales(precision, amax, 0, side.scales);
    quantize_dequantize(view, side.groups, side.scales, *e4m3(), nullptr, side.values.data());
    without_scales({side.values.data(), rows, depth, depth}, side.groups, side.scales, *e4m3(), side.plain.data());
    return side;
  };
  const Side a = rounded(x, m, Granularity::kTile), b = rounded(w, n, Granularity::kBlock);
  for (size_t i = 0; i < a.plain.size(); ++i) {
    ASSERT_EQ(decode(*e4m3(), encode(*e4m3(), a.plain[i])), static_cast<double>(a.plain[i]))
        << "a number of the format";
    ASSERT_EQ(a.plain[i] * a.scales[i / 128].scale, a.values[i]);
  }
  std::vector<float> out(static_cast<size_t>(m * n));
  hopper_gemm({{a.plain.data(), m, depth, depth}, a.groups, a.scales},
              {{b.plain.data(), n, depth, depth}, b.groups, b.scales}, true, out.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double want = 0;
      for (int64_t k = 0; k < depth; ++k)
        want += static_cast<double>(a.values[static_cast<size_t>(i * depth + k)]) *
                static_cast<double>(b.values[static_cast<size_t>(j * depth + k)]);
      EXPECT_NEAR(out[static_cast<size_t>(i * n + j)], want, 0.02);
    }
  }
  EXPECT_THROW(hopper_gemm({{a.plain.data(), m, depth, depth}, a.groups, a.scales}, {{b.plain.data(), n, depth, depth}},
                           false, out.data()),
               Error);
}

// Groups of a sum may be many where their scales are one.
TEST(HopperSum, EqualScalesInsideOfASumAreOne) {
  const std::vector<float> a(256, 1), b(256, 1);
  std::vector<BlockScale> scales(2, BlockScale{3, 1.0F / 3});
  float out = 0;
  hopper_gemm({{a.data(), 1, 256, 256}, {1, 128}, scales}, {{b.data(), 1, 256, 256}}, false, &out);
  EXPECT_EQ(out, 768);
  scales[1].scale = 4;
  EXPECT_THROW(hopper_gemm({{a.data(), 1, 256, 256}, {1, 128}, scales}, {{b.data(), 1, 256, 256}}, false, &out), Error);
  hopper_gemm({{a.data(), 1, 256, 256}, {1, 128}, scales}, {{b.data(), 1, 256, 256}}, true, &out);
  EXPECT_EQ(out, 128 * 3 + 128 * 4);
}

TEST(HopperSum, NanAndInfinityGiveNan) {
  std::vector<float> a(40, 1), b(40, 1);
  float out = 0;
  a[3] = std::numeric_limits<float>::quiet_NaN();
  hopper_gemm({{a.data(), 1, 40, 40}}, {{b.data(), 1, 40, 40}}, false, &out);
  EXPECT_TRUE(std::isnan(out));
  a[3] = std::numeric_limits<float>::infinity();
  hopper_gemm({{a.data(), 1, 40, 40}}, {{b.data(), 1, 40, 40}}, true, &out);
  EXPECT_TRUE(std::isnan(out));
}

}  // namespace
}  // namespace ranklab
