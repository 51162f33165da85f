// Attention whose softmax has a sink for each head, by every way to compute it, against plain operators on scores with
// one more column.
#include "core/nn/attention/attention_sinks.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "core/nn/attention/attention.h"
#include "core/nn/attention/decode_attention.h"
#include "core/nn/attention/tiled_attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/nn/attention_reference.h"

namespace ranklab {
namespace {

using golden::relative_error;
using golden::wave;

at::Tensor sinks_of(int64_t heads) { return wave({heads}, 0.4, 2.0); }

class UnfusedScope {
 public:
  UnfusedScope() { use_gpu_attention(GpuAttention::kUnfused); }
  ~UnfusedScope() { use_gpu_attention(GpuAttention::kAuto); }
  UnfusedScope(const UnfusedScope&) = delete;
  UnfusedScope& operator=(const UnfusedScope&) = delete;
};

// One key with score 1.5 and a sink of 0.5: the key's share is e / (e + 1) where scores differ by 1.
TEST(AttentionSinks, TakePartInTheSoftmax) {
  const AttentionShape shape{.heads = 1, .groups = 1, .head_dim = 1, .scale = 1};
  const at::Tensor qkv = at::tensor({1.0, 1.5, 2.0}, at::kDouble).view({1, 1, 3});
  const double share = std::exp(1.0) / (std::exp(1.0) + 1);
  EXPECT_NEAR(causal_attention(qkv, shape, {}, at::tensor({0.5}, at::kDouble)).item<double>(), 2 * share, 1e-12);
}

TEST(AttentionSinks, FarBelowAllScoresAreNone) {
  const AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 4};
  const at::Tensor qkv = wave({20, 2, 16}, 0.2);
  const at::Tensor got = causal_attention(qkv, shape, {}, at::full({2}, -800, at::kDouble));
  EXPECT_LT(relative_error(got, causal_attention(qkv, shape, {})), 1e-14);
}

// Whole sequences and windows, bounded scores and others, fused and not.
TEST(AttentionSinks, EqualPlainOperators) {
  for (const auto& [window, cap] :
       {std::pair{0, 0.0}, std::pair{5, 0.0}, std::pair{140, 0.0}, std::pair{0, 0.8}, std::pair{7, 0.8}}) {
    const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window, .cap = cap};
    for (const bool recompute : {false, true}) {
      expect_attention_is_the_reference(shape, wave({150, 2, 48}, 0.7, 2.0), recompute, sinks_of(4));
      const UnfusedScope scope;
      expect_attention_is_the_reference(shape, wave({20, 2, 48}, 0.7, 2.0), recompute, sinks_of(4));
    }
  }
}

// What a device without a kernel does. The sinks' gradient is made of 8 heads at a time.
void expect_tiles_join_sinks(int64_t heads) {
  const auto waves = [&](double from) { return wave({2, heads, 140, 5}, from); };
  const SoftmaxHeads in{waves(0.1), waves(0.5), waves(0.9)};
  const at::Tensor sinks = sinks_of(heads), grad = waves(0.3);
  for (const int64_t window : {0, 9}) {
    const ScoreRule rule{.window = window, .sinks = sinks};
    const SoftmaxedHeads got = tiled_attention(in, rule);
    join_sinks(got, sinks);
    const SoftmaxHeads d = tiled_attention_grad(in, got, grad, rule);
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& x : {in.q, in.k, in.v, sinks}) leaves.push_back(x.clone().requires_grad_());
    const at::Tensor want =
        softmax_attention_reference({leaves[0], leaves[1], leaves[2]}, {.window = window, .sinks = leaves[3]});
    const auto wants = torch::autograd::grad({want}, leaves, {grad});
    EXPECT_LT(relative_error(got.out, want.detach()), 1e-13);
    EXPECT_LT(relative_error(d.q, wants[0]), 1e-12);
    EXPECT_LT(relative_error(d.k, wants[1]), 1e-12);
    EXPECT_LT(relative_error(d.v, wants[2]), 1e-12);
    EXPECT_LT(relative_error(sink_grad(got, grad, sinks), wants[3]), 1e-12);
  }
}

TEST(AttentionSinks, JoinTilesWithoutACap) {
  for (const int64_t heads : {3, 8, 19}) {
    SCOPED_TRACE(heads);
    expect_tiles_join_sinks(heads);
  }
}

// Token by token and several at a time, with a window's cache and without.
TEST(AttentionSinks, DecodingIsTheSame) {
  for (const int64_t window : {0, 4}) {
    const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window};
    const at::Tensor qkv = wave({11, 2, 48}, 0.7), sinks = sinks_of(4);
    const RopeTable rope = make_rope_table(11, 6, 1e4, at::kDouble);
    const at::Tensor want = causal_attention(qkv, shape, rope, sinks);
    const int64_t kept = window > 0 ? window - 1 : 11;
    const auto room = [&] { return at::empty({2, 2, kept, 6}, at::kDouble); };
    AttentionCache cache{room(), room(), 0, window};
    int64_t at = 0;
    for (const int64_t count : {3, 1, 1, 4, 2}) {
      const at::Tensor got = decode_attention(qkv.narrow(0, at, count), shape, rope, cache, sinks);
      EXPECT_LT(relative_error(got, want.narrow(0, at, count)), 1e-12) << at;
      at += count;
    }
  }
}

// A sink's gradient comes out in its own type, from sums in fp32.
TEST(AttentionSinks, In16BitsGradientsAreThoseOfWideSums) {
  const AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 8};
  const at::Tensor qkv = wave({64, 2, 32}, 0.2, 2.0).to(at::kBFloat16), sinks = sinks_of(2).to(at::kBFloat16);
  const auto gradient = [&](at::ScalarType type) {
    const at::Tensor x = qkv.to(type).requires_grad_(), s = sinks.to(type).requires_grad_();
    return torch::autograd::grad({causal_attention(x, shape, {}, s).to(at::kFloat).sum()}, {s})[0];
  };
  EXPECT_EQ(gradient(at::kBFloat16).scalar_type(), at::kBFloat16);
  EXPECT_LT(relative_error(gradient(at::kBFloat16).to(at::kDouble), gradient(at::kDouble)), 0.02);
}

}  // namespace
}  // namespace ranklab
