// Attention with bounded scores, in tiles of queries, against plain differentiable ops on the whole square.
#include "core/nn/attention/tiled_attention.h"

#include <gtest/gtest.h>

#include "core/nn/attention/attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/nn/attention_reference.h"

namespace ranklab {
namespace {

using golden::relative_error;

// Sequences of one block and of several, with windows and without.
TEST(TiledAttention, EqualsPlainOperators) {
  for (const auto& [seq, window] : {std::pair{1, 0}, std::pair{12, 0}, std::pair{12, 5}, std::pair{300, 0},
                                    std::pair{300, 7}, std::pair{300, 140}}) {
    const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window, .scale = 0.3, .cap = 1.5};
    for (const bool recompute : {false, true})
      expect_attention_is_the_reference(shape, golden::wave({seq, 2, 48}, 0.7, 3.0), recompute);
  }
}

// One query with scores 10 and -10 bounded by 2: the weights are those of 2 tanh(5) and -2 tanh(5).
TEST(TiledAttention, BoundsScores) {
  const AttentionShape shape{.heads = 1, .groups = 1, .head_dim = 1, .scale = 1, .cap = 2};
  const at::Tensor qkv = at::tensor({0.0, 10.0, 1.0, 1.0, -10.0, 0.0}, at::kDouble).view({2, 1, 3});
  const double weight = 1 / (1 + std::exp(-4 * std::tanh(5.0)));
  EXPECT_NEAR(causal_attention(qkv, shape, {})[1].item<double>(), weight, 1e-12);
}

// An unbounded score of many times the cap's size is not changed by a cap far above it.
TEST(TiledAttention, AHighCapIsNone) {
  AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 4};
  const at::Tensor qkv = golden::wave({40, 2, 16}, 0.2);
  const at::Tensor want = causal_attention(qkv, shape, {});
  shape.cap = 1e6;
  EXPECT_LT(relative_error(causal_attention(qkv, shape, {}), want), 1e-9);
}

TEST(TiledAttention, In16BitsItIsTheRoundedOne) {
  const AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 8, .window = 9, .cap = 3};
  const at::Tensor qkv = golden::wave({40, 2, 32}, 0.2, 2.0).to(at::kBFloat16);
  const at::Tensor want = causal_attention(qkv.to(at::kFloat), shape, {});
  EXPECT_TRUE(at::equal(causal_attention(qkv, shape, {}), want.to(at::kBFloat16)));
}

}  // namespace
}  // namespace ranklab
