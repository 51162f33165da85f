// Attention to a window of positions, in blocks, against plain differentiable ops with a mask of the whole sequence.
#include "core/nn/attention/window_attention.h"

#include <gtest/gtest.h>

#include "core/nn/attention/attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/nn/attention_reference.h"

namespace ranklab {
namespace {

TEST(WindowAttention, AQuerySeesTheLastPositionsAndItself) {
  const at::Tensor mask = window_mask(2, 3, 1, 4, 2, at::kCPU);  // queries 2 to 4, keys 1 to 4
  const at::Tensor want = at::tensor({1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1}).view({3, 4}).to(at::kBool);
  EXPECT_TRUE(at::equal(mask, want));
}

// Sequences of one block and of several, the last of them short.
TEST(WindowAttention, EqualsAMaskOfTheWholeSequence) {
  for (const auto& [seq, window] : {std::pair{12, 1}, std::pair{12, 5}, std::pair{12, 12}, std::pair{12, 40},
                                    std::pair{300, 7}, std::pair{300, 140}, std::pair{300, 299}}) {
    const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window};
    for (const bool recompute : {false, true})
      expect_attention_is_the_reference(shape, golden::wave({seq, 2, 48}, 0.7), recompute);
  }
}

TEST(WindowAttention, WhatLiesBeforeTheWindowCountsForNothing) {
  const AttentionShape shape{.heads = 2, .groups = 2, .head_dim = 4, .window = 3};
  const at::Tensor one = golden::wave({9, 1, 24}, 0.2);
  at::Tensor other = one.clone();
  other.narrow(0, 0, 4).add_(5);
  const at::Tensor a = causal_attention(one, shape, {}), b = causal_attention(other, shape, {});
  EXPECT_TRUE(at::equal(a.narrow(0, 6, 3), b.narrow(0, 6, 3)));
  EXPECT_FALSE(at::equal(a[5], b[5]));
}

}  // namespace
}  // namespace ranklab
