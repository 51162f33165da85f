#include "core/checkpoint/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ranklab {
namespace {

ValueSpread of(const std::vector<float>& values) {
  ValueSpread spread;
  add_elements(spread, TensorType::kF32, std::as_bytes(std::span(values)));
  return spread;
}

TEST(TensorStats, CountsAndMeasures) {
  const ValueSpread stats = of({1, -3, 0, -0.0F, 2, 6});
  EXPECT_EQ(stats.elements(), 6u);
  EXPECT_EQ(stats.zeros, 2u);
  EXPECT_DOUBLE_EQ(stats.mean(), 1);
  EXPECT_DOUBLE_EQ(stats.std(), std::sqrt(44.0 / 6));
  EXPECT_DOUBLE_EQ(stats.largest(), 6);
}

TEST(TensorStats, WhatIsNotFiniteIsCountedApart) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ValueSpread stats = of({NAN, 4, kInfinity, -kInfinity, 2});
  EXPECT_EQ(stats.nans, 1u);
  EXPECT_EQ(stats.infinities, 2u);
  EXPECT_DOUBLE_EQ(stats.mean(), 3);
  EXPECT_DOUBLE_EQ(stats.std(), 1);
  EXPECT_DOUBLE_EQ(stats.largest(), 4);
  EXPECT_EQ(of({NAN}).std(), 0);
  EXPECT_EQ(of({}).elements(), 0u);
}

}  // namespace
}  // namespace ranklab
