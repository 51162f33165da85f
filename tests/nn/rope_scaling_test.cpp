// Stretched rotary frequencies against what the transformers package printed (tests/golden/rope_scaling.py, in fp32).
#include "core/nn/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/nn/yarn.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;

constexpr double kOfFp32 = 1e-6;

const RopeScaling kDynamic{.kind = RopeScalingKind::kDynamic, .factor = 2, .original_seq_length = 2048};

// Compares each frequency relative to itself: small ones count as much as large ones.
void expect_frequencies(const at::Tensor& got, const std::string& name) {
  const golden::Golden file = golden::load("rope_scaling.txt");
  const at::Tensor& want = file[name + ".frequencies"];
  ASSERT_EQ(got.sizes(), want.sizes()) << name;
  EXPECT_LT(((got - want) / want).abs().max().item<double>(), kOfFp32) << name;
}

TEST(GoldenRopeScaling, Llama3) {
  RopeScaling llama{.kind = RopeScalingKind::kLlama3};
  expect_frequencies(scaled_frequencies(128, 5e5, llama, 100), "llama31_8b");
  llama.factor = 32;
  expect_frequencies(scaled_frequencies(64, 5e5, llama, 100), "llama32_1b");
  llama.factor = 16;
  llama.high_freq_factor = 1;  // as the low one: nothing is between
  expect_frequencies(scaled_frequencies(128, 5e5, llama, 100), "llama4_scout");
}

TEST(GoldenRopeScaling, Linear) {
  expect_frequencies(scaled_frequencies(64, 1e4, {.kind = RopeScalingKind::kLinear, .factor = 4}, 100), "linear");
}

TEST(GoldenRopeScaling, DynamicFollowsTheLength) {
  expect_frequencies(scaled_frequencies(64, 1e4, kDynamic, 1000), "dynamic_1000");
  expect_frequencies(scaled_frequencies(64, 1e4, kDynamic, 2049), "dynamic_2049");
  expect_frequencies(scaled_frequencies(64, 1e4, kDynamic, 5000), "dynamic_5000");
  EXPECT_TRUE(at::equal(scaled_frequencies(64, 1e4, kDynamic, 2048), rope_frequencies(64, 1e4)));
}

TEST(GoldenRopeScaling, YarnOfOrdinaryHeads) {
  const golden::Golden file = golden::load("rope_scaling.txt");
  const auto expect_yarn = [&](int64_t width, double theta, const YarnConfig& yarn, const std::string& name) {
    expect_frequencies(yarn_frequencies(width, theta, yarn), name);
    EXPECT_NEAR(yarn_table_scale(yarn), file[name + ".scale"].item<double>(), 1e-12) << name;
  };
  const YarnConfig plain{.scaling_factor = 4, .original_seq_length = 32768, .mscale_all_dim = 0};
  expect_yarn(128, 1e6, plain, "yarn");
  YarnConfig other = plain;
  other.scaling_factor = 32;
  other.original_seq_length = 4096;
  other.truncate = false;
  expect_yarn(64, 150000, other, "yarn_not_truncated");
  other = plain;
  other.mscale = 0.7, other.mscale_all_dim = 0.5, other.beta_fast = 16, other.beta_slow = 2;
  expect_yarn(64, 1e6, other, "yarn_mscales");
  other = plain;
  other.attention_factor = 1.3;
  expect_yarn(64, 1e6, other, "yarn_attention_factor");
}

TEST(RopeScaling, ATableIsTheAnglesOfItsLength) {
  const at::Tensor position = at::arange(40, at::kDouble);
  const RopeScaling scaling{.kind = RopeScalingKind::kDynamic, .factor = 3, .original_seq_length = 16};
  const RopeTable table = make_scaled_table(40, {.rotary_dim = 8}, scaling, at::kDouble);
  for (const int64_t length : {40, 17, 5, 16, 40, 39}) {  // back and forth
    const at::Tensor angle = at::outer(position.narrow(0, 0, length), scaled_frequencies(8, 1e4, scaling, length));
    const RopeTable own = rope_for(table, length);
    EXPECT_LT(relative_error(own.cos_SD.narrow(0, 0, length), angle.cos()), 1e-15) << length;
    EXPECT_LT(relative_error(own.sin_SD.narrow(0, 0, length), angle.sin()), 1e-15) << length;
  }
  EXPECT_TRUE(at::equal(table.cos_SD, rope_for(table, 40).cos_SD));
  EXPECT_EQ(make_scaled_table(40, {.rotary_dim = 8}, {.kind = RopeScalingKind::kLinear}, at::kDouble).lengths, nullptr);
}

// A divisor for each frequency, up to the original length and behind it; queries and keys are scaled alike in both.
TEST(RopeScaling, LongRopeHasTwoTables) {
  const RopeScaling scaling{.kind = RopeScalingKind::kLongRope,
                            .factor = 4,
                            .original_seq_length = 16,
                            .short_factors = {1, 1.5, 2, 2.5},
                            .long_factors = {1, 4, 8, 16}};
  const double scale = std::sqrt(1 + std::log(4.0) / std::log(16.0));  // sqrt(1.5)
  EXPECT_DOUBLE_EQ(long_rope_scale(scaling), scale);
  const RopeTable table = make_scaled_table(40, {.rotary_dim = 8}, scaling, at::kDouble);
  for (const int64_t length : {40, 17, 16, 5}) {
    const RopeTable own = rope_for(table, length);
    for (const int64_t pair : {0, 1, 3}) {
      const auto i = static_cast<size_t>(pair);
      const double divisor = length > 16 ? scaling.long_factors[i] : scaling.short_factors[i];
      const double angle = 3 * std::pow(1e4, -static_cast<double>(pair) / 4) / divisor;
      EXPECT_NEAR(own.cos_SD[3][pair].item<double>(), scale * std::cos(angle), 1e-14) << length;
      EXPECT_NEAR(own.sin_SD[3][pair].item<double>(), scale * std::sin(angle), 1e-14) << length;
    }
  }
  // Sequences that are never longer have one table.
  EXPECT_EQ(make_scaled_table(16, {.rotary_dim = 8}, scaling, at::kDouble).lengths, nullptr);
  RopeScaling told = scaling;
  told.attention_factor = 1.25;
  EXPECT_DOUBLE_EQ(long_rope_scale(told), 1.25);
}

// GPT-NeoX turns elements i and i + R/2 of the first R and leaves the rest. The same here, with its elements in another
// order: the first half of those R, half of the rest, the second half of those R, the other half.
TEST(RopeScaling, TheFirstPairsOfAHeadTurnAlone) {
  const int64_t head = 16, rotary_dim = 4;
  const at::Tensor theirs = golden::wave({1, 1, 9, head}, 0.3);
  const RopeTable narrow = make_rope_table(9, rotary_dim, 1e4, at::kDouble);
  const at::Tensor rotated_there = at::cat(
      {apply_rope(theirs.narrow(-1, 0, rotary_dim), narrow), theirs.narrow(-1, rotary_dim, head - rotary_dim)}, -1);
  const auto in_our_order = [&](const at::Tensor& x) {
    return at::cat({x.narrow(-1, 0, 2), x.narrow(-1, 4, 6), x.narrow(-1, 2, 2), x.narrow(-1, 10, 6)}, -1);
  };
  const RopeTable table =
      make_scaled_table(9, {.rotary_dim = rotary_dim, .unrotated_dim = head - rotary_dim}, {}, at::kDouble);
  EXPECT_TRUE(at::equal(apply_rope(in_our_order(theirs), table), in_our_order(rotated_there)));
  const YarnConfig yarn{.scaling_factor = 4, .attention_factor = 1.5};
  const RopeTable scaled =
      make_yarn_table(9, {.rotary_dim = rotary_dim, .unrotated_dim = head - rotary_dim}, yarn, at::kDouble);
  EXPECT_TRUE(at::equal(scaled.cos_SD.narrow(1, 2, 6), at::ones({9, 6}, at::kDouble)));  // what does not turn stays
  EXPECT_DOUBLE_EQ(scaled.cos_SD[0][0].item<double>(), 1.5);
}

}  // namespace
}  // namespace ranklab
