// The transform against its matrix written out, its orthogonality, and what it is for: products stay, outliers spread.
#include "core/precision/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"

namespace ranklab {
namespace {

std::vector<float> normal(int64_t count, const char* name) {
  std::vector<float> x(static_cast<size_t>(count));
  RandomStream(8, RandomPurpose::kTest, name).fill_normal(0, x);
  return x;
}

// H[i][j] = (-1)^(number of bits that i and j share) / 4.
double entry(uint64_t i, uint64_t j) { return (std::popcount(i & j) % 2 == 0 ? 1 : -1) * 0.25; }

TEST(RandomHadamard, IsTheMatrixTimesTheSigns) {
  const int64_t rows = 32, cols = 21, stride = 25;
  const RandomHadamard hadamard(1234);
  const std::vector<float> x = normal(rows * stride, "x");
  std::vector<float> out(static_cast<size_t>(rows * cols));
  hadamard.transform({x.data(), rows, cols, stride}, out.data());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      double want = 0;
      for (int64_t j = 0; j < kHadamardRows; ++j) {
        want += entry(static_cast<uint64_t>(row % kHadamardRows), static_cast<uint64_t>(j)) *
                static_cast<double>(hadamard.signs()[static_cast<size_t>(j)]) *
                static_cast<double>(x[static_cast<size_t>((row / kHadamardRows * kHadamardRows + j) * stride + col)]);
      }
      EXPECT_NEAR(out[static_cast<size_t>(row * cols + col)], want, 1e-6);
    }
  }
}

TEST(RandomHadamard, ProductsOverRowsStay) {
  const int64_t rows = 64, cols = 9;
  const RandomHadamard hadamard(7);
  std::vector<float> a = normal(rows * cols, "a"), b = normal(rows * cols, "b");
  const auto product = [&](int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row)
      sum += static_cast<double>(a[static_cast<size_t>(row * cols + i)]) *
             static_cast<double>(b[static_cast<size_t>(row * cols + j)]);
    return sum;
  };
  std::vector<double> before;
  for (int64_t i = 0; i < cols * cols; ++i) before.push_back(product(i / cols, i % cols));
  hadamard.transform({a.data(), rows, cols, cols}, a.data());
  hadamard.transform({b.data(), rows, cols, cols}, b.data());
  for (int64_t i = 0; i < cols * cols; ++i)
    EXPECT_NEAR(product(i / cols, i % cols), before[static_cast<size_t>(i)], 2e-5);
}

TEST(RandomHadamard, AnOutlierSpreadsOverItsGroup) {
  std::vector<float> x(32), out(32);
  x[5] = 8;
  RandomHadamard(3).transform({x.data(), 32, 1, 1}, out.data());
  for (size_t row = 0; row < 32; ++row) EXPECT_EQ(std::abs(out[row]), row < 16 ? 2 : 0);
}

TEST(RandomHadamard, SignsFollowTheSeed) {
  std::set<std::array<float, kHadamardRows>> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) seen.insert(RandomHadamard(seed).signs());
  EXPECT_EQ(seen.size(), 8u);
  EXPECT_EQ(RandomHadamard(5).signs(), RandomHadamard(5).signs());
}

TEST(RandomHadamard, RowsThatDoNotDivideAreRefused) {
  std::vector<float> x(17);
  EXPECT_THROW(RandomHadamard(1).transform({x.data(), 17, 1, 1}, x.data()), Error);
}

}  // namespace
}  // namespace ranklab
