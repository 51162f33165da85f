// Pairs of adjacent elements against the rotation written out, element by element.
#include "core/nn/rotary_pairs.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "core/nn/rope.h"

namespace ranklab {
namespace {

const auto kPairType = at::TensorOptions().dtype(at::kDouble);

// Of x [S, D]: elements 2i and 2i + 1 of the first `rotary` turn by position theta^(-2i / rotary).
at::Tensor turned(const at::Tensor& x, int64_t rotary, double theta) {
  at::Tensor out = x.clone();
  for (int64_t s = 0; s < x.size(0); ++s) {
    for (int64_t i = 0; i < rotary / 2; ++i) {
      const double angle =
          static_cast<double>(s) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary));
      const double a = x[s][2 * i].item<double>(), b = x[s][2 * i + 1].item<double>();
      out[s][2 * i] = a * std::cos(angle) - b * std::sin(angle);
      out[s][2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  return out;
}

TEST(RotaryPairs, ScoresAreThoseOfAdjacentElementsTurned) {
  constexpr int64_t kPairSeq = 5, kPairHead = 8, kPairTheta = 100;
  at::manual_seed(1);
  for (const int64_t rotary : {8, 4}) {
    // A query head, a key head, and rows that belong to no head.
    const at::Tensor x = at::randn({kPairSeq, 1, 2 * kPairHead + 3}, kPairType);
    const at::Tensor halves = halves_of_pairs(x, 2, {.head = kPairHead, .rotary = rotary});
    EXPECT_TRUE(halves.narrow(-1, 2 * kPairHead, 3).equal(x.narrow(-1, 2 * kPairHead, 3)));
    const RopeTable table = make_rope_table(kPairSeq, rope_frequencies(rotary, static_cast<double>(kPairTheta)),
                                            kPairHead - rotary, 1.0, kPairType);
    const auto rotated = [&](int64_t head) {
      return apply_rope(halves.select(1, 0).narrow(-1, head * kPairHead, kPairHead), table);
    };
    const auto want = [&](int64_t head) {
      return turned(x.select(1, 0).narrow(-1, head * kPairHead, kPairHead), rotary, static_cast<double>(kPairTheta));
    };
    EXPECT_TRUE(at::allclose(rotated(0).matmul(rotated(1).t()), want(0).matmul(want(1).t()), 1e-12, 1e-12)) << rotary;
  }
}

// Of latent attention: the rotated part is the last one of a head.
TEST(RotaryPairs, GradientsGoWhereElementsCameFrom) {
  for (const RotaryPairs& pairs :
       {RotaryPairs{.head = 6, .rotary = 6}, {.head = 8, .rotary = 4}, {.head = 10, .first = 4, .rotary = 6}}) {
    const at::Tensor x = at::randn({3, 2, 2 * pairs.head + 1}, kPairType).set_requires_grad(true);
    const at::Tensor numbers = at::arange(x.size(-1), kPairType).expand_as(x);
    // Each element is sent where its number goes, and its gradient is that number.
    (halves_of_pairs(x, 2, pairs) * halves_of_pairs(numbers, 2, pairs)).sum().backward();
    EXPECT_TRUE(x.grad().equal(numbers)) << pairs.head;
  }
}

}  // namespace
}  // namespace ranklab
