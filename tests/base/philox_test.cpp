#include "core/base/numbers/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace ranklab {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers published with Random123 (kat_vectors, philox4x32 10 rounds).
TEST(Philox, MatchesRandom123KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, AShardDrawsTheWholeTensorsNumbers) {
  const RandomStream stream(1234, RandomPurpose::kInit, "layers.0.mlp.up.weight");
  std::vector<float> whole(1000);
  stream.fill_normal(0, whole);
  for (const size_t begin : {0u, 1u, 2u, 3u, 517u, 999u}) {
    std::vector<float> shard(std::min<size_t>(37, whole.size() - begin));
    stream.fill_normal(begin, shard);
    for (size_t i = 0; i < shard.size(); ++i) {
      EXPECT_EQ(shard[i], whole[begin + i]);
      EXPECT_EQ(stream.normal(begin + i), whole[begin + i]);
    }
  }
}

TEST(RandomStream, ManyWordsAreThoseOfEachElement) {
  const RandomStream stream(77, RandomPurpose::kTest, "words");
  for (const uint64_t first : {uint64_t{0}, uint64_t{3}, uint64_t{0xfffffffeu} * 4 + 1, ~uint64_t{0} - 30}) {
    for (const size_t count : {0u, 1u, 5u, 31u, 32u, 33u, 200u}) {
      std::vector<uint32_t> words(count);
      stream.fill_bits(first, words);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(words[i], stream.bits(first + i)) << first << " + " << i;
    }
  }
}

TEST(RandomStream, SeedPurposeNameAndStepEachChangeTheNumbers) {
  const RandomStream base(1, RandomPurpose::kInit, "w", 0);
  EXPECT_NE(base.bits(5), RandomStream(2, RandomPurpose::kInit, "w", 0).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1, RandomPurpose::kDropout, "w", 0).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1, RandomPurpose::kInit, "v", 0).bits(5));
  EXPECT_NE(base.bits(5), RandomStream(1, RandomPurpose::kInit, "w", 1).bits(5));
  EXPECT_EQ(base.bits(5), RandomStream(1, RandomPurpose::kInit, "w", 0).bits(5));
}

TEST(RandomStream, NormalsAndUniformsHaveTheRightMoments) {
  constexpr size_t kCount = 200000;
  const RandomStream stream(7, RandomPurpose::kTest, "moments");
  std::vector<float> normal(kCount), uniform(kCount);
  stream.fill_normal(0, normal);
  stream.fill_uniform(0, uniform);
  double mean = 0, square = 0, fourth = 0, uniform_mean = 0;
  for (size_t i = 0; i < kCount; ++i) {
    mean += normal[i];
    square += static_cast<double>(normal[i]) * normal[i];
    fourth += std::pow(normal[i], 4);
    uniform_mean += uniform[i];
    ASSERT_GE(uniform[i], 0.0f);
    ASSERT_LT(uniform[i], 1.0f);
  }
  const double n = kCount;
  EXPECT_NEAR(mean / n, 0.0, 4 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1.0, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3.0, 4 * std::sqrt(96 / n));
  EXPECT_NEAR(uniform_mean / n, 0.5, 4 * std::sqrt(1.0 / 12 / n));
}

TEST(RandomPermutation, IsABijectionAndChangesWithTheEpoch) {
  for (const uint64_t size : {1u, 2u, 3u, 7u, 64u, 1000u, 1025u}) {
    const RandomPermutation permutation(size, 99, 0);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(permutation(i), size);
      seen.insert(permutation(i));
    }
    EXPECT_EQ(seen.size(), size);
  }
  const RandomPermutation first(1000, 99, 0), second(1000, 99, 1);
  int same = 0, fixed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same += first(i) == second(i);
    fixed += first(i) == i;
  }
  EXPECT_LT(same, 10);
  EXPECT_LT(fixed, 10);
}

}  // namespace
}  // namespace ranklab
