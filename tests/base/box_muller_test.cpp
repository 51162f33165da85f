// Normals of many words at a time have the bits of those of two words.
#include "core/base/numbers/box_muller.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <utility>

#include "core/base/numbers/philox.h"

namespace ranklab {
namespace {

using PairWords = uint32_t[kNormalsAtOnce];

// The words of a stream, changed.
void expect_same_bits(const std::function<void(PairWords&)>& change, uint64_t repeats) {
  const RandomStream stream(3, RandomPurpose::kTest, "words");
  for (uint64_t repeat = 0; repeat < repeats; ++repeat) {
    PairWords words;
    stream.fill_bits(repeat * kNormalsAtOnce, words);
    change(words);
    float normals[kNormalsAtOnce];
    box_muller_pairs(words, normals);
    for (size_t i = 0; i < kNormalsAtOnce; i += 2) {
      const auto pair = box_muller(words[i], words[i + 1]);
      ASSERT_EQ(std::bit_cast<uint32_t>(normals[i]), std::bit_cast<uint32_t>(pair[0]))
          << words[i] << " " << words[i + 1];
      ASSERT_EQ(std::bit_cast<uint32_t>(normals[i + 1]), std::bit_cast<uint32_t>(pair[1]))
          << words[i] << " " << words[i + 1];
    }
  }
}

TEST(BoxMuller, ManyAtATimeHaveTheSameBits) {
  expect_same_bits([](PairWords&) {}, 1 << 15);
}

// Pairs, found among some billion, whose result is so close to the middle between two fp32 numbers that the last bits
// of the polynomials decide the rounding.
TEST(BoxMuller, AlsoNextToARoundingsMiddle) {
  const std::pair<uint32_t, uint32_t> near[] = {
      {1034670568, 3625972617}, {2451867385, 3291875367}, {1829502803, 1226292703}};
  for (const auto& [a, b] : near) expect_same_bits([&](PairWords& words) { words[0] = a, words[1] = b; }, 1);
}

// Where the sine or the cosine is nearly zero, so that rounding of the angle is most of it.
TEST(BoxMuller, AlsoNextToQuarterTurns) {
  for (uint32_t around = 0; around < 8; ++around) {
    const auto change = [&](PairWords& words) {
      for (size_t i = 1; i < kNormalsAtOnce; i += 2) words[i] = (around << 29) + words[i] % 4096 - 2048;
    };
    expect_same_bits(change, 100);
    expect_same_bits([&](PairWords& words) { words[1] = around << 29; }, 10);
  }
}

// The smallest and the largest radius, which is zero with a sign of its own.
TEST(BoxMuller, AlsoAtTheEndsOfTheLogarithm) {
  const auto change = [](PairWords& words) {
    for (size_t i = 0; i < kNormalsAtOnce; i += 2) words[i] = i % 4 == 0 ? words[i] % 256 : ~(words[i] % 256);
    words[0] = 0;
    words[2] = 0xffffffff;
  };
  expect_same_bits(change, 1000);
}

}  // namespace
}  // namespace ranklab
