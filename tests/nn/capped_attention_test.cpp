// Attention with bounded scores, in blocks of queries, against plain differentiable ops on the whole square.
#include "core/nn/capped_attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/nn/attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;

// Sequences of one block and of several, with windows and without.
TEST(CappedAttention, EqualsPlainOperators) {
  for (const auto& [seq, window] : {std::pair{1, 0}, std::pair{12, 0}, std::pair{12, 5}, std::pair{300, 0},
                                    std::pair{300, 7}, std::pair{300, 140}}) {
    for (const bool again : {false, true}) {
      SCOPED_TRACE(testing::Message() << seq << " positions, window " << window << (again ? ", computed again" : ""));
      const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window, .scale = 0.3, .cap = 1.5};
      const RopeTable rope = make_rope_table(seq, 6, 1e4, at::kDouble);
      const at::Tensor base = golden::wave({seq, 2, 48}, 0.7, 3.0);
      const at::Tensor grad = golden::wave({seq, 2, 24}, 0.1);
      const auto run = [&](const auto& attention) {
        at::Tensor qkv = base.clone().requires_grad_();
        const at::Tensor out = attention(qkv);
        return std::pair(out.detach(), torch::autograd::grad({out}, {qkv}, {grad})[0]);
      };
      const auto want = run([&](const at::Tensor& qkv) { return causal_attention_reference(qkv, shape, rope); });
      const auto got = run([&](const at::Tensor& qkv) {
        return again ? causal_attention_again(qkv, shape, rope).out : causal_attention(qkv, shape, rope);
      });
      EXPECT_LT(relative_error(got.first, want.first), 1e-12);
      EXPECT_LT(relative_error(got.second, want.second), 1e-12);
    }
  }
}

// One query with scores 10 and -10 bounded by 2: the weights are those of 2 tanh(5) and -2 tanh(5).
TEST(CappedAttention, BoundsScores) {
  const AttentionShape shape{.heads = 1, .groups = 1, .head_dim = 1, .scale = 1, .cap = 2};
  const at::Tensor qkv = at::tensor({0.0, 10.0, 1.0, 1.0, -10.0, 0.0}, at::kDouble).view({2, 1, 3});
  const double weight = 1 / (1 + std::exp(-4 * std::tanh(5.0)));
  EXPECT_NEAR(causal_attention(qkv, shape, {})[1].item<double>(), weight, 1e-12);
}

// An unbounded score of many times the cap's size is not changed by a cap far above it.
TEST(CappedAttention, AHighCapIsNone) {
  AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 4};
  const at::Tensor qkv = golden::wave({40, 2, 16}, 0.2);
  const at::Tensor want = causal_attention(qkv, shape, {});
  shape.cap = 1e6;
  EXPECT_LT(relative_error(causal_attention(qkv, shape, {}), want), 1e-9);
}

TEST(CappedAttention, In16BitsItIsTheRoundedOne) {
  const AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 8, .window = 9, .cap = 3};
  const at::Tensor qkv = golden::wave({40, 2, 32}, 0.2, 2.0).to(at::kBFloat16);
  const at::Tensor want = causal_attention(qkv.to(at::kFloat), shape, {});
  EXPECT_TRUE(at::equal(causal_attention(qkv, shape, {}), want.to(at::kBFloat16)));
}

}  // namespace
}  // namespace ranklab
