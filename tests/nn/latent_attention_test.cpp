// Latent attention: the fast path against plain differentiable ops, and decoding with a cache against all positions at
// once.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/nn/attention/decode_attention.h"
#include "core/nn/attention/latent_attention.h"
#include "core/nn/yarn.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;
using golden::wave;

const LatentShape kNarrowValues{3, 6, 4, 5, 0.3}, kSameWidth{2, 6, 2, 8, 0.3}, kWideValues{2, 3, 4, 16, 0.3};
// Queries that see the last positions alone, bounded scores, both.
const LatentShape kWindow{3, 6, 4, 5, 0.3, 4}, kBounded{2, 3, 4, 16, 0.3, 0, 0.4}, kBoth{2, 6, 2, 8, 0.3, 3, 0.4};

RopeTable rope_of(const LatentShape& s, int64_t seq, at::ScalarType dtype) {
  return make_yarn_table(seq, {.rotary_dim = s.rope, .theta = 100.0}, {.scaling_factor = 4, .original_seq_length = 16},
                         dtype);
}

LatentInput input_of(const LatentShape& s, int64_t seq, int64_t batch, at::ScalarType dtype, bool grad = true) {
  const auto leaf = [&](int64_t width, double salt) {
    return wave({seq, batch, width}, salt, 2.0).to(dtype).requires_grad_(grad);
  };
  return {leaf(s.heads * (s.nope + s.rope), 0.1), leaf(s.heads * (s.nope + s.v), 0.2), leaf(s.rope, 0.3)};
}

enum class Sinks { kNone, kOfHeads };

void expect_same_as_reference(const LatentShape& s, int64_t seq, int64_t batch, at::ScalarType dtype, double tolerance,
                              Sinks which) {
  SCOPED_TRACE(testing::Message() << "heads " << s.heads << " v " << s.v << " S " << seq << " B " << batch);
  const auto leaf = [&] {
    return which == Sinks::kOfHeads ? wave({s.heads}, 0.8, 2.0).to(dtype).requires_grad_() : at::Tensor();
  };
  const at::Tensor sinks = leaf(), plain_sinks = leaf();
  const LatentInput fast = input_of(s, seq, batch, dtype), plain = input_of(s, seq, batch, dtype);
  const RopeTable rope = rope_of(s, seq, dtype);
  const at::Tensor got = latent_attention(fast, s, rope, sinks),
                   want = latent_attention_reference(plain, s, rope, plain_sinks);
  ASSERT_EQ(got.sizes(), (std::vector<int64_t>{seq, batch, s.heads * s.v}));
  EXPECT_LT(relative_error(got, want), tolerance);
  // A gradient that is not dense, as from a narrowed output.
  const at::Tensor grad = wave({batch, seq, s.heads * s.v}, 0.7).to(dtype).transpose(0, 1);
  torch::autograd::backward({got, want}, {grad, grad});
  EXPECT_LT(relative_error(fast.q.grad(), plain.q.grad()), tolerance);
  EXPECT_LT(relative_error(fast.kv.grad(), plain.kv.grad()), tolerance);
  EXPECT_LT(relative_error(fast.k_rope.grad(), plain.k_rope.grad()), tolerance);
  if (sinks.defined()) {
    EXPECT_LT(relative_error(sinks.grad(), plain_sinks.grad()), tolerance);
  }
}

TEST(LatentAttention, EqualsThePlainOps) {
  for (const LatentShape& s : {kNarrowValues, kSameWidth, kWideValues, kWindow, kBounded, kBoth}) {
    for (const auto& [seq, batch] : {std::pair<int64_t, int64_t>{7, 2}, {1, 3}, {33, 1}}) {
      for (const Sinks sinks : {Sinks::kNone, Sinks::kOfHeads}) {
        expect_same_as_reference(s, seq, batch, at::kDouble, 1e-12, sinks);
        expect_same_as_reference(s, seq, batch, at::kFloat, sinks == Sinks::kNone ? 5e-6 : 3e-5, sinks);
      }
    }
  }
}

// What other devices take.
TEST(LatentAttention, SixteenBitsAreCloseToThePlainOps) {
  for (const LatentShape& s : {kNarrowValues, kSameWidth, kWideValues, kWindow, kBounded, kBoth}) {
    const at::Tensor grad = wave({7, 2, s.heads * s.v}, 0.7);
    const LatentInput half = input_of(s, 7, 2, at::kBFloat16), plain = input_of(s, 7, 2, at::kDouble);
    const at::Tensor got = latent_attention(half, s, rope_of(s, 7, at::kBFloat16));
    const at::Tensor want = latent_attention_reference(plain, s, rope_of(s, 7, at::kDouble));
    EXPECT_LT(relative_error(got, want), 0.03);
    torch::autograd::backward({got, want}, {grad.to(at::kBFloat16), grad});
    EXPECT_LT(relative_error(half.kv.grad(), plain.kv.grad()), 0.05);
    EXPECT_LT(relative_error(half.k_rope.grad(), plain.k_rope.grad()), 0.05);
  }
}

// Against the whole square of scores, written down here.
TEST(LatentAttention, SeesItsWindowAndBoundsItsScores) {
  const at::NoGradGuard no_grad;
  const LatentInput in = input_of(kBoth, 7, 2, at::kDouble, false);
  const at::Tensor got = latent_attention(in, kBoth, {});  // nothing turns: positions are learned
  for (int64_t head = 0; head < kBoth.heads; ++head) {
    const at::Tensor q = in.q.narrow(2, head * 8, 8), k = at::cat({in.kv.narrow(2, head * 14, 6), in.k_rope}, 2);
    const at::Tensor v = in.kv.narrow(2, head * 14 + 6, 8);
    for (int64_t position = 0; position < 7; ++position) {
      const int64_t first = std::max<int64_t>(0, position - 2), count = position + 1 - first;
      const at::Tensor scores = (q.narrow(0, position, 1) * k.narrow(0, first, count)).sum(2) * 0.3;  // [keys, B]
      const at::Tensor weights = at::softmax(0.4 * at::tanh(scores / 0.4), 0);
      const at::Tensor want = (weights.unsqueeze(2) * v.narrow(0, first, count)).sum(0);
      EXPECT_LT(relative_error(got[position].narrow(1, head * 8, 8), want), 1e-12) << position;
    }
  }
}

TEST(LatentAttention, TheFutureChangesNothing) {
  const at::NoGradGuard no_grad;
  const LatentInput in = input_of(kNarrowValues, 6, 1, at::kDouble, false);
  const RopeTable rope = rope_of(kNarrowValues, 6, at::kDouble);
  const at::Tensor before = latent_attention(in, kNarrowValues, rope);
  in.kv.narrow(0, 4, 2).fill_(9.0);
  in.k_rope.narrow(0, 4, 2).fill_(9.0);
  const at::Tensor after = latent_attention(in, kNarrowValues, rope);
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 4), after.narrow(0, 0, 4)));
  EXPECT_FALSE(at::equal(before.narrow(0, 4, 2), after.narrow(0, 4, 2)));
}

TEST(LatentAttention, PositionsMatterOnlyToTheRotatedPart) {
  const at::NoGradGuard no_grad;
  LatentInput in = input_of(kSameWidth, 5, 1, at::kDouble, false);
  in.k_rope.zero_();  // nothing of a key carries a position
  const RopeTable rope = rope_of(kSameWidth, 9, at::kDouble);
  const RopeTable later{rope.cos_SD.narrow(0, 4, 5), rope.sin_SD.narrow(0, 4, 5)};
  EXPECT_LT(relative_error(latent_attention(in, kSameWidth, later), latent_attention(in, kSameWidth, rope)), 1e-14);
  in.k_rope.fill_(0.5);  // rotated by the same angle on both sides: only distances count
  EXPECT_LT(relative_error(latent_attention(in, kSameWidth, later), latent_attention(in, kSameWidth, rope)), 1e-12);
}

class DecodeLatentAttention : public testing::TestWithParam<LatentShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, DecodeLatentAttention, testing::Values(kNarrowValues, kWindow, kBounded, kBoth));

TEST_P(DecodeLatentAttention, EqualsAllPositionsAtOnce) {
  const at::NoGradGuard no_grad;
  const LatentShape s = GetParam();
  const int64_t seq = 9, batch = 2, lora = 7;
  const at::Tensor q = wave({seq, batch, s.heads * (s.nope + s.rope)}, 0.1, 2.0);
  const at::Tensor compressed = wave({seq, batch, lora}, 0.2), k_rope = wave({seq, batch, s.rope}, 0.3);
  const at::Tensor up = wave({s.heads * (s.nope + s.v), lora}, 0.4), bias = wave({s.heads * (s.nope + s.v)}, 0.6, 2.0);
  const RopeTable rope = rope_of(s, seq, at::kDouble);
  const at::Tensor sinks = wave({s.heads}, 0.8, 2.0);
  const at::Tensor want = latent_attention_reference({q, at::linear(compressed, up, bias), k_rope}, s, rope, sinks);
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{9}, {4, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 4, 2}}) {
    AttentionCache cache{at::full({batch, 1, seq, lora + s.rope}, 1e9, want.options()), {}, 0};
    int64_t at = 0;
    for (const int64_t count : lengths) {
      const at::Tensor got = decode_latent_attention(
          {q.narrow(0, at, count), compressed.narrow(0, at, count), k_rope.narrow(0, at, count), up, bias}, s, rope,
          cache, sinks);
      EXPECT_LT(relative_error(got, want.narrow(0, at, count)), 1e-12) << count << " positions at " << at;
      at += count;
      EXPECT_EQ(cache.positions, at);
    }
  }
}

TEST(DecodeAttention, EqualsAllPositionsAtOnce) {
  const at::NoGradGuard no_grad;
  const int64_t seq = 8, batch = 2;
  for (const auto& [heads, groups, rotates] :
       {std::tuple<int64_t, int64_t, bool>{4, 4, true}, {4, 2, true}, {3, 1, false}}) {
    const AttentionShape s{heads, groups, 6};
    const at::Tensor qkv = wave({seq, batch, (heads + 2 * groups) * 6}, 0.5, 2.0);
    const RopeTable rope = rotates ? make_rope_table(seq, 6, 100.0, at::kDouble) : RopeTable{};
    const at::Tensor want = causal_attention_reference(qkv, s, rope);
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{8}, {5, 1, 1, 1}, {1, 3, 4}}) {
      const auto room = [&] { return at::full({batch, groups, seq, 6}, 1e9, want.options()); };
      AttentionCache cache{room(), room(), 0};
      int64_t at = 0;
      for (const int64_t count : lengths) {
        const at::Tensor got = decode_attention(qkv.narrow(0, at, count), s, rope, cache);
        EXPECT_LT(relative_error(got, want.narrow(0, at, count)), 1e-12) << count << " positions at " << at;
        at += count;
      }
    }
  }
}

TEST(DecodeAttention, AFullCacheIsAnError) {
  const at::NoGradGuard no_grad;
  const auto room = [] { return at::zeros({1, 1, 3, 4}, at::kDouble); };
  AttentionCache cache{room(), room(), 0};
  const AttentionShape shape{1, 1, 4};
  decode_attention(wave({2, 1, 12}, 0.1), shape, {}, cache);
  try {
    decode_attention(wave({2, 1, 12}, 0.1), shape, {}, cache);
    FAIL() << "four positions fit into three";
  } catch (const Error& error) {
    EXPECT_EQ(error.text().got, "2 positions after 2");
    EXPECT_EQ(error.text().want, "at most 3 in all");
  }
  EXPECT_EQ(cache.bytes_per_token(), 2 * 4 * 8);
}

}  // namespace
}  // namespace ranklab
