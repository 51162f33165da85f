// Attention over several ranks' positions against the same on one rank: output and gradients of queries, keys and
// values.
//   U: fp64, 1e-12, a ring and gathered keys     the same bits: heads that change places with positions
#include "core/parallel/context/context_attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/nn/attention.h"
#include "core/parallel/context/head_exchange.h"
#include "core/parallel/context/position_order.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::wave;

constexpr SequenceBalance kBalances[] = {SequenceBalance::kContiguous, SequenceBalance::kZigzag,
                                         SequenceBalance::kStripe};

ParallelDims context_dims(int cp) { return {.world = cp, .cp = cp}; }

at::Tensor index_of(const std::vector<PositionRun>& part) { return at::tensor(positions_of(part), at::kLong); }

struct Trained {
  at::Tensor out, grad;  // of a rank's positions
};

// On one rank: [S, B, ...] of all positions.
Trained on_one_rank(const at::Tensor& qkv, const at::Tensor& seed, const AttentionShape& shape, const RopeTable& rope) {
  const at::Tensor x = qkv.clone().requires_grad_(true);
  const at::Tensor out = causal_attention(x, shape, rope);
  torch::autograd::backward({out}, {seed});
  return {out.detach(), x.grad()};
}

Trained on_this_rank(const at::Tensor& qkv, const at::Tensor& seed, const AttentionShape& shape, const RopeTable& rope,
                     const ContextParallel& cp, bool recompute) {
  const at::Tensor index = index_of(sequence_part(qkv.size(0), cp.size(), cp.rank(), cp.split.balance));
  const at::Tensor x = qkv.index_select(0, index).requires_grad_(true);
  at::Tensor out;
  if (cp.split.exchange == ContextExchange::kAllToAll) {
    const at::Tensor heads = exchange_qkv(x, shape, cp);
    out = positions_of_all_heads(causal_attention(heads, shape_of_one_rank(shape, cp), rope), cp);
  } else {
    out = context_attention(rotated_heads(x, shape, rope_at(rope, index)), score_rule(shape), cp, recompute);
  }
  torch::autograd::backward({out}, {seed.index_select(0, index)});
  return {out.detach(), x.grad()};
}

double difference(const at::Tensor& got, const at::Tensor& want) {
  return (got - want).abs().max().item<double>() / want.abs().max().item<double>();
}

struct ContextCase {
  const char* name;
  AttentionShape shape;
};

const ContextCase kCases[] = {
    {"grouped heads", {.heads = 4, .groups = 2, .head_dim = 6}},
    {"one key head", {.heads = 4, .groups = 1, .head_dim = 6}},
    {"short window", {.heads = 4, .groups = 4, .head_dim = 6, .window = 3}},
    {"long window", {.heads = 4, .groups = 4, .head_dim = 6, .window = 17}},
    {"capped scores", {.heads = 4, .groups = 4, .head_dim = 6, .cap = 0.5}},
    {"capped scores of a window", {.heads = 4, .groups = 2, .head_dim = 6, .window = 5, .scale = 0.3, .cap = 0.5}},
};

TEST(ContextAttention, EqualsOneRank) {
  constexpr int64_t kSeq = 24, kBatch = 2;
  for (const ContextCase& one : kCases) {
    const int64_t width = (one.shape.heads + 2 * one.shape.groups) * one.shape.head_dim;
    const at::Tensor qkv = wave({kSeq, kBatch, width}, 0.3), seed = wave({kSeq, kBatch, 4 * one.shape.head_dim}, 1.7);
    const RopeTable rope = make_rope_table(kSeq, one.shape.head_dim, 100, at::TensorOptions(at::kDouble));
    const Trained want = on_one_rank(qkv, seed, one.shape, rope);
    for (const auto exchange : {ContextExchange::kP2p, ContextExchange::kAllGather, ContextExchange::kAllToAll}) {
      for (const SequenceBalance balance : kBalances) {
        for (const int ranks : {2, 4}) {
          run_ranks(context_dims(ranks), [&](RankContext& context) {
            const ContextParallel cp{&context.comm(Axis::kCp), {exchange, balance}};
            open_ring(cp);
            const at::Tensor index = index_of(sequence_part(kSeq, ranks, cp.rank(), balance));
            for (const bool recompute : {false, true}) {
              const Trained got = on_this_rank(qkv, seed, one.shape, rope, cp, recompute);
              const std::string what = std::string(one.name) + ", " + std::string(name(exchange)) + ", " +
                                       std::string(name(balance)) + ", rank " + std::to_string(cp.rank());
              EXPECT_LT(difference(got.out, want.out.index_select(0, index)), 1e-12) << what;
              EXPECT_LT(difference(got.grad, want.grad.index_select(0, index)), 1e-12) << what;
            }
          });
        }
      }
    }
  }
}

// Each rank computes whole heads, so nothing is added in another order.
TEST(ContextAttention, ExchangedHeadsGiveTheSameBits) {
  constexpr int64_t kSeq = 64;
  const AttentionShape shape{.heads = 8, .groups = 4, .head_dim = 8};
  const at::Tensor qkv = wave({kSeq, 1, 16 * 8}, 0.3).to(at::kFloat), seed = wave({kSeq, 1, 64}, 1.7).to(at::kFloat);
  const RopeTable rope = make_rope_table(kSeq, 8, 100, at::TensorOptions(at::kFloat));
  const Trained want = on_one_rank(qkv, seed, shape, rope);
  run_ranks(context_dims(4), [&](RankContext& context) {
    const ContextParallel cp{&context.comm(Axis::kCp), {ContextExchange::kAllToAll, SequenceBalance::kZigzag}};
    const Trained got = on_this_rank(qkv, seed, shape, rope, cp, false);
    const at::Tensor index = index_of(sequence_part(kSeq, 4, cp.rank(), cp.split.balance));
    EXPECT_TRUE(at::equal(got.out, want.out.index_select(0, index)));
    EXPECT_TRUE(at::equal(got.grad, want.grad.index_select(0, index)));
  });
}

// Sums over blocks are wide: the error is that of rounding the result to bf16 once, whatever the number of ranks.
TEST(ContextAttention, SixteenBitsLoseNoMoreOnMoreRanks) {
  constexpr int64_t kSeq = 64;
  const AttentionShape shape{.heads = 2, .groups = 1, .head_dim = 16};
  const at::Tensor qkv = wave({kSeq, 1, 64}, 0.3).to(at::kBFloat16), seed = wave({kSeq, 1, 32}, 1.7).to(at::kBFloat16);
  const RopeTable none;
  const Trained exact = on_one_rank(qkv.to(at::kDouble), seed.to(at::kDouble), shape, none);
  run_ranks(context_dims(8), [&](RankContext& context) {
    const ContextParallel cp{&context.comm(Axis::kCp), {ContextExchange::kP2p, SequenceBalance::kZigzag}};
    open_ring(cp);
    const Trained got = on_this_rank(qkv, seed, shape, none, cp, false);
    const at::Tensor index = index_of(sequence_part(kSeq, 8, cp.rank(), cp.split.balance));
    EXPECT_LT(difference(got.out.to(at::kDouble), exact.out.index_select(0, index)), 0.01);
    EXPECT_LT(difference(got.grad.to(at::kDouble), exact.grad.index_select(0, index)), 0.02);
  });
}

TEST(ContextAttention, OrdersAreInverse) {
  for (const SequenceBalance balance : kBalances) {
    for (const int ranks : {1, 2, 4}) {
      const at::Tensor x = at::arange(24).view({24, 1}).expand({24, 3}).contiguous();
      const at::Tensor by_rank = rank_after_rank(x, ranks, balance);
      EXPECT_TRUE(at::equal(in_position_order(by_rank, ranks, balance), x));
      std::vector<at::Tensor> want;
      for (int rank = 0; rank < ranks; ++rank) want.push_back(index_of(sequence_part(24, ranks, rank, balance)));
      EXPECT_TRUE(at::equal(by_rank.select(1, 0), at::cat(want)));
    }
  }
}

TEST(ContextAttention, HeadsThatDoNotDivideAreRefused) {
  run_ranks(context_dims(4), [](RankContext& context) {
    const ContextParallel cp{&context.comm(Axis::kCp), {ContextExchange::kAllToAll, SequenceBalance::kZigzag}};
    EXPECT_THROW(shape_of_one_rank({.heads = 6, .groups = 6, .head_dim = 4}, cp), Error);
    EXPECT_THROW(shape_of_one_rank({.heads = 12, .groups = 3, .head_dim = 4}, cp), Error);
  });
}

}  // namespace
}  // namespace ranklab
