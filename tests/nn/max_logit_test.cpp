// The largest logit of each head as attention finds it, by every way in which it computes scores, beside the largest
// element of the plain formula's scores.
#include "core/nn/attention/max_logit.h"

#include <gtest/gtest.h>

#include "core/nn/attention/attention.h"
#include "core/nn/attention/block_attention.h"
#include "core/nn/attention/latent_attention.h"
#include "core/nn/attention/unfused_attention.h"
#include "core/sim/aten.h"
#include "core/sim/recompute_scope.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

at::Tensor nothing_yet(int64_t heads, at::ScalarType type = at::kDouble) { return at::full({heads}, kUnseen, type); }

// cap tanh(q k scale / cap), each query with the keys behind it, of a window the last ones: [heads].
at::Tensor largest_of_formula(const SoftmaxHeads& in, const ScoreRule& rule, const at::Tensor& seen) {
  const at::Tensor k = in.k.repeat_interleave(in.q.size(1) / in.k.size(1), 1);
  const double scale = rule.scale.value_or(1 / std::sqrt(static_cast<double>(in.q.size(3))));
  at::Tensor scores = at::matmul(in.q, k.transpose(2, 3)) * scale;
  if (rule.cap > 0) scores = at::tanh(scores / rule.cap) * rule.cap;
  return scores.masked_fill(seen.logical_not(), kUnseen).amax({0, 2, 3});
}

at::Tensor seen_of_window(int64_t seq, int64_t window) {
  const at::Tensor key = at::arange(seq), query = key.unsqueeze(1);
  return key.le(query).logical_and(key.gt(query - (window > 0 ? window : seq)));
}

void expect_equal(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_LT(golden::relative_error(got, want), 1e-13) << got << want;
}

struct ShapeCase {
  int64_t seq, window;
  double cap;
};
const ShapeCase kShapes[] = {{1, 0, 0},     {12, 0, 0},   {12, 5, 0},    {300, 0, 0},  {300, 7, 0},
                             {300, 140, 0}, {12, 0, 1.5}, {300, 7, 1.5}, {300, 0, 1.5}};

// Fused (windows by blocks with masks, caps in tiles) and unfused, grouped heads, with and without recomputation.
TEST(MaxLogit, OfEveryKernelIsTheFormulas) {
  for (const auto& [seq, window, cap] : kShapes) {
    AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window, .scale = 0.3, .cap = cap};
    const at::Tensor qkv = golden::wave({seq, 2, 48}, 0.7, 3.0);
    const RopeTable rope = make_rope_table(seq, 6, 1e4, at::kDouble);
    const SoftmaxHeads heads = rotated_heads(qkv, shape, rope);
    const at::Tensor want = largest_of_formula(heads, score_rule(shape), seen_of_window(seq, window));
    for (const bool recompute : {false, true}) {
      for (const bool unfused : {false, true}) {
        SCOPED_TRACE(testing::Message() << seq << " window " << window << " cap " << cap << recompute << unfused);
        shape.max_logits = nothing_yet(4);
        const at::Tensor in = qkv.clone().requires_grad_();
        at::Tensor out;
        if (unfused)
          out = unfused_attention(rotated_heads(in, shape, rope), score_rule(shape), recompute);
        else
          out = recompute ? recomputable_causal_attention(in, shape, rope).out : causal_attention(in, shape, rope);
        expect_equal(shape.max_logits, want);
        shape.max_logits.fill_(kUnseen);
        out.sum().backward();
        EXPECT_EQ(shape.max_logits.max().item<double>(), kUnseen) << "backward saw no forward";
      }
    }
  }
}

// Sinks take part in the softmax but are not logits of queries and keys; negative logits count as they are.
TEST(MaxLogit, LeavesOutSinksAndKeepsSigns) {
  AttentionShape shape{.heads = 2, .groups = 2, .head_dim = 1, .scale = 1, .max_logits = nothing_yet(2)};
  const at::Tensor qkv = at::tensor({1.0, -1.0, -3.0, 2.0, 0.0, 0.0, 2.0, 1.0, -5.0, 4.0, 0.0, 0.0}, at::kDouble);
  causal_attention(qkv.view({2, 1, 6}), shape, {}, at::tensor({50.0, 60.0}, at::kDouble));
  expect_equal(shape.max_logits, at::tensor({-3.0, 4.0}, at::kDouble));
  causal_attention(qkv.view({2, 1, 6}) * 0.5, shape, {});
  expect_equal(shape.max_logits, at::tensor({-0.75, 4.0}, at::kDouble));
}

TEST(MaxLogit, In16BitsIsOfTheWidenedNumbers) {
  AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 8, .max_logits = nothing_yet(4, at::kFloat)};
  const at::Tensor qkv = golden::wave({140, 2, 64}, 0.7, 3.0).to(at::kBFloat16);
  causal_attention(qkv, shape, {});
  const SoftmaxHeads heads = rotated_heads(qkv.to(at::kDouble), shape, {});
  const at::Tensor want = largest_of_formula(heads, {}, seen_of_window(140, 0));
  EXPECT_LT(golden::relative_error(shape.max_logits.to(at::kDouble), want), 1e-6);
}

TEST(MaxLogit, OfLatentAttentionIsOfBothParts) {
  LatentShape shape{.heads = 3, .nope = 4, .rope = 2, .v = 5, .softmax_scale = 0.4};
  const LatentInput in{golden::wave({20, 2, 18}, 0.7, 2.0), golden::wave({20, 2, 27}, 0.3, 2.0),
                       golden::wave({20, 2, 2}, 0.5, 2.0)};
  const RopeTable rope = make_rope_table(20, 2, 1e4, at::kDouble);
  const SoftmaxHeads heads = latent_heads(in, shape, rope);
  const at::Tensor want = largest_of_formula(heads, score_rule(shape), seen_of_window(20, 0));
  for (const bool recompute : {false, true}) {
    shape.max_logits = nothing_yet(3);
    recompute ? recomputable_latent_attention(in, shape, rope).out : latent_attention(in, shape, rope);
    expect_equal(shape.max_logits, want);
  }
}

// Blocks as rings have them, whole, triangular and bands, fused and in plain operators (a cap).
TEST(MaxLogit, OfBlocksIsOfTheirRows) {
  using Kind = AttentionBlock::Kind;
  const SoftmaxHeads in{golden::wave({2, 4, 150, 6}, 0.7, 3.0), golden::wave({2, 2, 160, 6}, 0.4, 3.0),
                        golden::wave({2, 2, 160, 6}, 0.2, 3.0)};
  AttentionBlock full{.query = 3, .queries = 140, .key = 5, .keys = 150, .kind = Kind::kFull};
  AttentionBlock causal{.query = 3, .queries = 140, .key = 5, .keys = 140, .kind = Kind::kCausal};
  AttentionBlock band{.query = 3, .queries = 140, .key = 5, .keys = 150, .kind = Kind::kBand};
  band.band = {-4, 2};
  for (const AttentionBlock& block : {full, causal, band}) {
    const at::Tensor key = at::arange(block.keys), query = at::arange(block.queries).unsqueeze(1);
    at::Tensor seen = at::ones({block.queries, block.keys}, at::kBool);
    if (block.kind == Kind::kCausal) seen = key.le(query);
    if (block.kind == Kind::kBand) seen = key.ge(query - 4).logical_and(key.le(query + 2));
    for (const double cap : {0.0, 1.5}) {
      const ScoreRule rule{.cap = cap, .max_logits = nothing_yet(4)};
      block_attention(in, block, rule);
      expect_equal(rule.max_logits, largest_of_formula(rows_of_block(in, block), rule, seen));
    }
  }
}

}  // namespace
}  // namespace ranklab
