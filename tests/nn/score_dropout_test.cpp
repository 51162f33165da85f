// Dropout of attention's probabilities: its mask is of global pairs, and blocks with it are plain attention with it,
// forward and backward.
#include "core/nn/attention/score_dropout.h"

#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <array>

#include <cmath>
#include <numeric>

#include "core/nn/attention/block_attention.h"
#include "core/nn/attention/softmax_merge.h"
#include "core/nn/device_random.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;

std::vector<int64_t> positions(int64_t first, int64_t count, int64_t stride = 1) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(first + i * stride);
  return out;
}

ScoreDropout dropout_of(double p) {
  return {.p = p, .seed = 7, .layer_name = "layers.0", .step = 3, .first_sample = 0, .heads = 6, .seq_length = 64};
}

TEST(ScoreDropout, DropsThisPartOfAllPairs) {
  const at::Tensor like = at::empty({0}, at::kDouble);
  for (const double p : {0.1, 0.5}) {
    const at::Tensor mask = dropout_of(p).mask(0, 4, 6, positions(0, 64), positions(0, 64), like);
    EXPECT_NEAR(mask.eq(0).to(at::kDouble).mean().item<double>(), p, 0.01);
    EXPECT_NEAR(mask.max().item<double>(), 1 / (1 - p), 1e-6);
    EXPECT_NEAR(mask.mean().item<double>(), 1, 0.02);
  }
}

// Any part, drawn by itself, is that part of the whole.
TEST(ScoreDropout, IsOfGlobalPairs) {
  const at::Tensor like = at::empty({0}, at::kDouble);
  const at::Tensor whole = dropout_of(0.3).mask(0, 4, 6, positions(0, 64), positions(0, 64), like);
  ScoreDropout part = dropout_of(0.3);
  part.first_sample = 1;
  part.first_head = 2;
  const at::Tensor run = part.mask(1, 2, 3, positions(16, 8), positions(8, 24), like);
  EXPECT_TRUE(at::equal(run, whole.narrow(0, 2, 2).narrow(1, 2, 3).narrow(2, 16, 8).narrow(3, 8, 24)));
  const at::Tensor stripe = part.mask(0, 1, 1, positions(1, 16, 4), positions(2, 16, 4), like);
  EXPECT_TRUE(at::equal(stripe, whole.narrow(0, 1, 1).narrow(1, 2, 1).slice(2, 1, 64, 4).slice(3, 2, 64, 4)));
  for (const auto& change :
       std::vector<void (*)(ScoreDropout&)>{[](ScoreDropout& d) { d.step = 4; }, [](ScoreDropout& d) { d.seed = 8; },
                                            [](ScoreDropout& d) { d.layer_name = "layers.1"; }}) {
    ScoreDropout other = dropout_of(0.3);
    change(other);
    EXPECT_FALSE(at::equal(other.mask(0, 4, 6, positions(0, 64), positions(0, 64), like), whole));
  }
}

TEST(ScoreDropout, OffsetsOnTheDeviceDrawTheSameBits) {
  const at::Tensor like = at::empty({0}, at::kDouble);
  for (const int64_t length : {64, 50}) {
    ScoreDropout dropout = dropout_of(0.3);
    dropout.seq_length = length;
    dropout.first_sample = 5;
    dropout.first_head = 2;
    const auto masks = [&] {
      return std::array{dropout.mask(1, 2, 3, positions(16, 8), positions(8, 24), like),
                        dropout.mask(1, 2, 3, positions(16, 8), positions(1, 12, 4), like),
                        dropout.mask(1, 2, 3, {1, 2, 30, 31, 32}, {0, 1, 2, 3, 40, 41}, like),
                        dropout.mask(1, 2, 3, {}, positions(8, 24), like)};
    };
    const auto want = masks();
    dropout.offset = random_offset(dropout.step, dropout.first_sample, at::kCPU);
    dropout.step = dropout.first_sample = 77;  // not read
    const auto got = masks();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << length << ", " << i;
  }
}

at::Tensor drawn(at::IntArrayRef shape, double salt) { return golden::wave(shape, salt).mul(1.7); }

// Softmax over all keys, then the mask, in differentiable ops.
TEST(ScoreDropout, OfBlocksIsThatOfWholeAttention) {
  const int64_t seq = 12, groups = 2, heads = 4;
  for (const double cap : {0.0, 2.0}) {
    at::Tensor q = drawn({2, heads, seq, 8}, 0.1).set_requires_grad(true);
    at::Tensor k = drawn({2, groups, seq, 8}, 0.7).set_requires_grad(true);
    at::Tensor v = drawn({2, groups, seq, 8}, 1.9).set_requires_grad(true);
    const at::Tensor kept =
        dropout_of(0.4).mask(0, 2, heads, positions(0, seq), positions(0, seq), at::empty({0}, at::kDouble));
    at::Tensor scores = at::matmul(q, repeat_groups(k, heads).transpose(2, 3)) / std::sqrt(8.0);
    if (cap > 0) scores = (scores / cap).tanh() * cap;
    const at::Tensor hidden = at::ones({seq, seq}, at::kBool).tril().logical_not();
    const at::Tensor p = at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    const at::Tensor want = at::matmul(p * kept, repeat_groups(v, heads)), grad = drawn(want.sizes(), 2.3);
    torch::autograd::backward({want}, {grad});

    const at::NoGradGuard no_grad;
    const SoftmaxHeads in{q.detach(), k.detach(), v.detach()};
    const ScoreRule rule{.cap = cap};
    // A triangle, a square and a triangle, as two ranks have them.
    const std::vector<AttentionBlock> blocks = {
        {.queries = 5, .keys = 5, .kind = AttentionBlock::Kind::kCausal},
        {.query = 5, .queries = 7, .key = 0, .keys = 5},
        {.query = 5, .queries = 7, .key = 5, .keys = 7, .kind = AttentionBlock::Kind::kCausal}};
    const auto of = [&](const AttentionBlock& b) {
      return kept.narrow(2, b.query, b.queries).narrow(3, b.key, b.keys);
    };
    SoftmaxMerge merge(in.q, 8);
    for (const AttentionBlock& b : blocks) merge.add(b, block_attention(in, b, rule, of(b)), at::kDouble);
    const SoftmaxedHeads got = merge.result();
    EXPECT_LT(relative_error(got.out, want), 1e-13) << cap;
    at::Tensor dq = at::zeros_like(in.q), dk = at::zeros_like(in.k), dv = at::zeros_like(in.v);
    for (const AttentionBlock& b : blocks) {
      const SoftmaxHeads d = block_attention_grad(in, got, grad, b, rule, of(b));
      dq.narrow(2, b.query, b.queries).add_(d.q);
      dk.narrow(2, b.key, b.keys).add_(d.k);
      dv.narrow(2, b.key, b.keys).add_(d.v);
    }
    EXPECT_LT(relative_error(dq, q.grad()), 1e-13) << cap;
    EXPECT_LT(relative_error(dk, k.grad()), 1e-13) << cap;
    EXPECT_LT(relative_error(dv, v.grad()), 1e-13) << cap;
  }
}

}  // namespace
}  // namespace ranklab
