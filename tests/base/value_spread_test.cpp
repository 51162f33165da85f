// Statistics of numbers in pieces, beside their definitions over all of them; columns of histograms.
#include "core/base/numbers/value_spread.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "core/base/numbers/histogram_axis.h"
#include "core/base/numbers/philox.h"

namespace ranklab {
namespace {

std::vector<double> numbers(size_t count, double mean, double std) {
  std::vector<float> normal(count);
  RandomStream(7, RandomPurpose::kTest, "spread").fill_normal(0, normal);
  std::vector<double> values;
  for (const float x : normal) values.push_back(mean + std * static_cast<double>(x));
  return values;
}

double moment(const std::vector<double>& values, double mean, int power) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [&](double sum, double x) { return sum + std::pow(x - mean, power); }) /
         static_cast<double>(values.size());
}

TEST(ValueSpread, PiecesJoinToTheWhole) {
  std::vector<double> values = numbers(30'000, 1e3, 1e-2);  // a mean of a hundred thousand deviations
  values[77] = 1e3 + 0.5, values[78] = 1e3 - 0.7;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  const double variance = moment(values, mean, 2), kurtosis = moment(values, mean, 4) / (variance * variance);
  ValueSpread pieces, left, right;
  for (size_t at = 0; at < values.size(); at += 977)
    pieces.add(std::span(values).subspan(at, std::min<size_t>(977, values.size() - at)));
  left.add(std::span(values).first(100));
  right.add(std::span(values).subspan(100));
  left.add(right);
  for (const ValueSpread& got : {pieces, left}) {
    EXPECT_EQ(got.elements(), values.size());
    EXPECT_NEAR(got.mean(), mean, 1e-12 * mean);
    EXPECT_NEAR(got.std(), std::sqrt(variance), 1e-8 * std::sqrt(variance));
    EXPECT_NEAR(got.kurtosis(), kurtosis, 1e-6 * kurtosis);
    EXPECT_EQ(got.least, 1e3 - 0.7);
    EXPECT_EQ(got.most, 1e3 + 0.5);
  }
  EXPECT_GT(kurtosis, 100) << "two elements are far out";
  ValueSpread normal;
  normal.add(numbers(200'000, 0, 0.02));
  EXPECT_NEAR(normal.kurtosis(), 3, 0.05);
}

TEST(ValueSpread, OutliersAreBeyondTenTimesTheRootMeanSquare) {
  std::vector<double> values(10'000, 0.01);
  for (size_t i = 0; i < 10; ++i) values[i] = i < 4 ? -0.2 : 0.05;
  ValueSpread spread;
  spread.add(values);
  EXPECT_DOUBLE_EQ(spread.outlier_share(), 4.0 / 10'000);
  EXPECT_EQ(ValueSpread().outlier_share(), 0);
}

TEST(ValueHistogram, EachValueIsInTheBinWhoseLimitsHoldIt) {
  using H = ValueHistogram;
  for (const double x : {1.0, 1.2499, 1.25, -1.0, -1.25, 3e-5, -7e4, 0.02}) {
    const int64_t bin = H::bin(static_cast<float>(x));
    // Above the limit of the bin before; below its own, for a negative value at most there.
    if (x > -65536) {
      EXPECT_GE(x, H::limit(bin - 1)) << x;
    }
    EXPECT_LE(x, H::limit(bin)) << x;
  }
  EXPECT_EQ(H::bin(0.0F), H::kMagnitudes);
  EXPECT_EQ(H::bin(1e-20F), H::kMagnitudes) << "counts as zero";
  EXPECT_EQ(H::bin(-std::numeric_limits<float>::infinity()), 0);
}

TEST(HistogramAxis, IsSymmetricAndKeepsEveryCount) {
  std::vector<double> counts(ValueHistogram::kBins);
  const auto put = [&](double x, double n) {
    counts[static_cast<size_t>(ValueHistogram::bin(static_cast<float>(x)))] += n;
  };
  put(0, 5), put(-0.9, 3), put(0.01, 7), put(1e-8, 2);
  const HistogramAxis axis = histogram_axis(counts, 10, ValueHistogram::kPerPower);
  EXPECT_EQ(axis.columns(), 21);
  EXPECT_EQ(axis.most(), 1.0);
  EXPECT_EQ(axis.least(), std::ldexp(1.0, -10));
  const std::vector<double> columns = axis.pool(counts);
  EXPECT_EQ(columns[0], 3) << "[-1, -1/2)";
  EXPECT_EQ(columns[10], 5);
  EXPECT_EQ(columns[11], 2) << "what is smaller than the axis is with its innermost column";
  EXPECT_EQ(columns[14], 7) << "[1/128, 1/64) is the fourth of 2^-10 ...";
  EXPECT_EQ(std::accumulate(columns.begin(), columns.end(), 0.0), 17);
  EXPECT_EQ(histogram_axis(std::vector<double>(ValueHistogram::kBins), 10, 4).columns(), 3) << "of zeros alone";
}

}  // namespace
}  // namespace ranklab
