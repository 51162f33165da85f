// Scales of groups: the rules of OCP MX v1.0, of power-of-two scales that round up, of NVFP4 and of plain fp32 scales;
// the fast function against the plain one.
#include "core/precision/block_scale.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/precision/recipe.h"
#include "tests/precision/special_numbers.h"

namespace ranklab {
namespace {

TensorPrecision scaled_by(const NumberFormat* format, ScaleRule rule) { return {.format = format, .scale = rule}; }

float scale_of(const NumberFormat* format, ScaleRule rule, float amax, float tensor_amax = 0) {
  return block_scale(scaled_by(format, rule), amax, tensor_amax).scale;
}

// OCP MX v1.0, section 6.3: the largest power of two not above amax, divided by that of the format (2^8 of E4M3, 2^15
// of E5M2, 2^2 of E2M1).
TEST(BlockScale, E8m0IsTheRuleOfMx) {
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0, 448), 1);
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0, 511.9F), 1) << "and 511.9 saturates";
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0, 512), 2);
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0, 255.9F), 0.5F);
  EXPECT_EQ(scale_of(e5m2(), ScaleRule::kE8M0, 1), 0x1p-15F);
  EXPECT_EQ(scale_of(e2m1(), ScaleRule::kE8M0, 7.9F), 1);
  EXPECT_EQ(scale_of(e2m1(), ScaleRule::kE8M0, 3), 0.5F);
  EXPECT_EQ(scale_of(e2m1(), ScaleRule::kE8M0, std::numeric_limits<float>::max()), 0x1p125F);
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0, 0x1p-120F), 0x1p-127F) << "the smallest E8M0";
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0, 0x1p-149F), 0x1p-127F);
}

// The smallest power of two with which nothing saturates.
TEST(BlockScale, RoundsPowersOfTwoUp) {
  for (const ScaleRule rule : {ScaleRule::kE8M0Up, ScaleRule::kPowerOfTwo}) {
    EXPECT_EQ(scale_of(e4m3(), rule, 448), 1);
    EXPECT_EQ(scale_of(e4m3(), rule, std::nextafter(448.0F, 449.0F)), 2);
    EXPECT_EQ(scale_of(e4m3(), rule, 447), 1);
    EXPECT_EQ(scale_of(e4m3(), rule, 224), 0.5F);
    EXPECT_EQ(scale_of(e2m1(), rule, 6), 1);
    EXPECT_EQ(scale_of(e2m1(), rule, 6.1F), 2);
    EXPECT_EQ(scale_of(e5m2(), rule, 57344), 1);
    EXPECT_EQ(scale_of(e5m2(), rule, 1), 0x1p-15F);
    EXPECT_EQ(scale_of(e5m2(), rule, 0.8F), 0x1p-16F) << "0.8 / 57344 lies between 2^-17 and 2^-16";
  }
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kE8M0Up, 0x1p-140F), 0x1p-127F);
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kPowerOfTwo, 0x1p-140F), 0x1p-126F) << "a normal fp32 number";
}

TEST(BlockScale, Fp32BringsTheLargestToTheLargest) {
  const BlockScale scale = block_scale(scaled_by(e4m3(), ScaleRule::kFp32), 896, 0);
  EXPECT_EQ(scale, (BlockScale{2, 0.5F}));
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kFp32, 1), 1.0F / 448);
  EXPECT_EQ(scale_of(e5m2(), ScaleRule::kFp32, 3), 3.0F / 57344);
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kDelayedFp32, 1), 1.0F / 448);
  EXPECT_EQ(scale_of(e4m3(), ScaleRule::kFp32, 0x1p-149F), 0x1p-126F) << "its inverse is finite";
}

// arXiv 2509.25149: the tensor's scale brings the largest magnitude to 6 x 448, the block's scale in E4M3
// the block's largest to 6.
TEST(BlockScale, Nvfp4HasTwoLevels) {
  const TensorPrecision nvfp4 = scaled_by(e2m1(), ScaleRule::kE4M3);
  EXPECT_EQ(tensor_scale(nvfp4, 2688), 1);
  EXPECT_EQ(tensor_scale(nvfp4, 1344), 0.5F);
  EXPECT_EQ(block_scale(nvfp4, 2688, 2688), (BlockScale{448, 1.0F / 448}));
  EXPECT_EQ(block_scale(nvfp4, 6, 2688), (BlockScale{1, 1}));
  EXPECT_EQ(block_scale(nvfp4, 6, 1344).scale, 1) << "2 x 0.5";
  EXPECT_EQ(block_scale(nvfp4, 6.2F, 2688).scale, 1) << "1.033 is 1 in E4M3";
  EXPECT_EQ(block_scale(nvfp4, 6.5F, 2688).scale, 1.125F);
  EXPECT_EQ(block_scale(nvfp4, 0.001F, 2688), (BlockScale{0, 0})) << "below half of the smallest E4M3: all zeros";
  EXPECT_EQ(tensor_scale(nvfp4, 0), 1);
  // Scales of the smallest tensors still have inverses.
  for (const float whole : {0x1p-149F, 0x1p-126F, 0x1p-110F}) {
    const BlockScale least = block_scale(nvfp4, whole, whole);
    EXPECT_TRUE(std::isfinite(least.inverse)) << whole;
  }
}

TEST(BlockScale, ZerosAndWhatIsNotFinite) {
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    for (const ScaleRule rule : {ScaleRule::kFp32, ScaleRule::kPowerOfTwo, ScaleRule::kE8M0, ScaleRule::kE8M0Up,
                                 ScaleRule::kE4M3, ScaleRule::kDelayedFp32}) {
      EXPECT_EQ(block_scale(scaled_by(format, rule), 0, 0), BlockScale{});
      EXPECT_EQ(block_scale(scaled_by(format, rule), 0, 3), BlockScale{});
      for (const float amax : {kInfinity, kNan}) {
        EXPECT_TRUE(std::isnan(block_scale(scaled_by(format, rule), amax, amax).scale));
        EXPECT_TRUE(std::isnan(block_scale(scaled_by(format, rule), amax, 1).inverse));
        // The scales of NVFP4's blocks depend on the whole tensor.
        EXPECT_EQ(std::isnan(block_scale(scaled_by(format, rule), 1, amax).scale), rule == ScaleRule::kE4M3);
        EXPECT_EQ(std::isnan(block_scale(scaled_by(format, rule), 0, amax).scale), rule == ScaleRule::kE4M3);
      }
    }
  }
}

// Every exponent with the mantissas around those of the formats' largest numbers, and random ones.
std::vector<float> magnitudes() {
  std::vector<float> all = {0, kInfinity, kNan, std::numeric_limits<float>::max()};
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const uint32_t mantissa :
         {0U, 1U, 0x200000U, 0x3fffffU, 0x400000U, 0x400001U, 0x5fffffU, 0x600000U, 0x600001U, 0x7fffffU})
      all.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
  }
  const RandomStream stream(3, RandomPurpose::kTest, "magnitudes");
  for (uint64_t i = 0; i < 5000; ++i) all.push_back(std::bit_cast<float>(stream.bits(i) & 0x7fffffffU));
  return all;
}

TEST(BlockScale, TheFastOnesAreThePlainOnes) {
  const std::vector<float> amax = magnitudes();
  std::vector<BlockScale> fast(amax.size());
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    for (const ScaleRule rule :
         {ScaleRule::kFp32, ScaleRule::kPowerOfTwo, ScaleRule::kE8M0, ScaleRule::kE8M0Up, ScaleRule::kE4M3}) {
      for (const float tensor_amax : {1.0F, 3e38F, 1e-44F, 0.0F, kNan, kInfinity}) {
        block_scales(scaled_by(format, rule), amax, tensor_amax, fast);
        for (size_t i = 0; i < amax.size(); ++i) {
          const BlockScale plain = block_scale(scaled_by(format, rule), amax[i], tensor_amax);
          ASSERT_TRUE(plain == fast[i] || (std::isnan(plain.scale) && std::isnan(fast[i].scale)))
              << format->name << " " << name(rule) << " of " << amax[i] << " in " << tensor_amax << ": " << plain.scale
              << ", " << fast[i].scale;
          ASSERT_FALSE(std::isinf(fast[i].inverse)) << amax[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
