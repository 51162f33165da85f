// What a trace says of a rounded tensor, counted by hand.
#include "core/parallel/quantized/precision_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/precision/recipe.h"
#include "core/sim/aten.h"
#include "core/trace/precision_event.h"

namespace ranklab {
namespace {

at::Tensor matrix(std::vector<float> numbers, int64_t cols) { return at::tensor(numbers, at::kFloat).view({-1, cols}); }

// Two groups of four in a row; scales are powers of two. The second row is zeros.
TEST(PrecisionNumbers, AreThoseOfTheTensor) {
  const TensorPrecision tile{
      .format = e2m1(), .granularity = Granularity::kTile, .block = 4, .scale = ScaleRule::kE8M0};
  //                        amax 7: scale 1, 7 is beyond 6           amax 24: scale 4, 0.9 is 0.225 of it
  const at::Tensor x = matrix({7, -0.2F, 0, 1, 24, 0.9F, -0.0F, -8, 0, 0, 0, 0, 0, 0, 0, 0}, 8);
  const RoundedOperand rounded = round_operand(x, {.precision = tile});
  EXPECT_TRUE(at::equal(rounded.values[0], at::tensor({6.0F, -0.0F, 0.0F, 1.0F, 24.0F, 0.0F, -0.0F, -8.0F})));
  const std::vector<double> n = precision_numbers(*e2m1(), x, rounded);
  EXPECT_EQ(n[kPrecisionFormatBits], 2 * 16 + 1);
  EXPECT_EQ(n[kPrecisionGroupRows], 1);
  EXPECT_EQ(n[kPrecisionGroupCols], 4);
  EXPECT_EQ(n[kPrecisionRows], 2);
  EXPECT_EQ(n[kPrecisionCols], 8);
  EXPECT_EQ(n[kPrecisionCount], 16);
  EXPECT_EQ(n[kPrecisionNonzero], 6) << "neither zero";
  EXPECT_EQ(n[kPrecisionUnderflow], 2) << "-0.2 and 0.9";
  EXPECT_EQ(n[kPrecisionSaturated], 1) << "7";
  EXPECT_NEAR(n[kPrecisionSignal], 49 + 0.04 + 1 + 576 + 0.81 + 64, 1e-4);
  EXPECT_NEAR(n[kPrecisionNoise], 1 + 0.04 + 0.81, 1e-6);
  EXPECT_EQ(n[kPrecisionAmax], 24);
  EXPECT_EQ(n[kPrecisionScaleMin], 1);
  EXPECT_EQ(n[kPrecisionScaleMax], 4) << "groups of zeros have none";
  EXPECT_EQ(n[kPrecisionScaleMean], 2.5);
  EXPECT_EQ(n[kPrecisionScaleStd], 1.5);
  const auto bin = [&](int exponent) {
    return n[static_cast<size_t>(kPrecisionHistogram + (exponent - kPrecisionFirstBin))];
  };
  EXPECT_EQ(bin(2), 1) << "7";
  EXPECT_EQ(bin(-3), 1) << "0.2";
  EXPECT_EQ(bin(-1), 1) << "0.9";
  EXPECT_EQ(bin(0) + bin(3) + bin(4), 3);
  ASSERT_EQ(n.size(), kPrecisionScales + 4);
  EXPECT_EQ(n[kPrecisionScaleRows], 2);
  EXPECT_EQ(n[kPrecisionScaleCols], 2);
  EXPECT_EQ(std::vector<double>(n.begin() + kPrecisionScales, n.end()), (std::vector<double>{1, 4, 0, 0}));
}

TEST(PrecisionNumbers, FusedPartsHaveScalesOfTheirOwn) {
  const TensorPrecision block{
      .format = e4m3(), .granularity = Granularity::kBlock, .block = 2, .scale = ScaleRule::kPowerOfTwo};
  const at::Tensor x = matrix({448, 1, 1, 896, 1, 1}, 1);
  const RoundedOperand rounded = round_operand(x, {.precision = block, .row_parts = {{0, 3, 0}, {3, 3, 3}}});
  const std::vector<double> n = precision_numbers(*e4m3(), x, rounded);
  EXPECT_EQ(n[kPrecisionScaleMax], 2);
  EXPECT_EQ(n[kPrecisionSaturated], 0);
  EXPECT_EQ(n[kPrecisionScaleRows], 2) << "of the first part";
}

// The largest and the smallest magnitudes have a bin each, and numbers that are none are left out.
TEST(PrecisionNumbers, EndsOfTheHistogram) {
  const at::Tensor x = matrix({1e-30F, 1e30F, INFINITY, NAN}, 4);
  RoundedOperand rounded{.values = at::zeros({1, 4})};
  rounded.pieces = {{.rows = 1, .cols = 4, .groups = {1, 4}, .first_group = 0, .group_count = 1}};
  rounded.scales = {{}};
  const std::vector<double> n = precision_numbers(*e4m3(), x, rounded);
  EXPECT_EQ(n[kPrecisionNonzero], 2);
  EXPECT_EQ(n[kPrecisionHistogram], 1);
  EXPECT_EQ(n[kPrecisionHistogram + kPrecisionBins - 1], 1);
}

}  // namespace
}  // namespace ranklab
