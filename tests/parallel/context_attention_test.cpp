// Attention over several ranks' positions against the same on one rank: output and gradients of queries, keys, values
// and sinks.
//   U: fp64, 1e-12, a ring and gathered keys     the same bits: heads that change places with positions
#include "core/parallel/context/context_attention.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/nn/attention/attention.h"
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

ParallelDims context_dims(int cp, int heads = 1) { return {.world = cp, .cp = cp, .cp_heads = heads}; }

ContextParallel context_parallel(RankContext& context, ContextExchange exchange, SequenceBalance balance) {
  ContextParallel cp{&context.comm(Axis::kCp), {exchange, balance}};
  if (exchange == ContextExchange::kAllToAllP2p) {
    cp.heads = &context.comm(Axis::kCpHeads);
    cp.ring = &context.comm(Axis::kCpRing);
  }
  open_ring(cp);
  return cp;
}

at::Tensor index_of(const std::vector<PositionRun>& part) { return at::tensor(positions_of(part), at::kLong); }

struct Trained {
  at::Tensor out, grad;  // of a rank's positions
  at::Tensor sinks_grad = {};
};

at::Tensor leaf(const at::Tensor& x) { return x.defined() ? x.clone().requires_grad_(true) : x; }

// On one rank: [S, B, ...] of all positions.
Trained on_one_rank(const at::Tensor& qkv, const at::Tensor& seed, const AttentionShape& shape, const RopeTable& rope,
                    const at::Tensor& sinks = {}) {
  const at::Tensor x = leaf(qkv), s = leaf(sinks);
  const at::Tensor out = causal_attention(x, shape, rope, s);
  torch::autograd::backward({out}, {seed});
  return {out.detach(), x.grad(), s.defined() ? s.grad() : s};
}

// The same, document by document.
Trained on_one_rank(const at::Tensor& qkv, const at::Tensor& seed, const AttentionShape& shape, const RopeTable& rope,
                    const at::Tensor& sinks, const DocumentStarts& documents) {
  Trained all{at::empty_like(seed), at::empty_like(qkv), sinks.defined() ? at::zeros_like(sinks) : sinks};
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto sequence = static_cast<int64_t>(i);
    for (size_t d = 0; d < documents[i].size(); ++d) {
      const int64_t begin = documents[i][d];
      const int64_t end = d + 1 < documents[i].size() ? documents[i][d + 1] : qkv.size(0);
      const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, end - begin).narrow(1, sequence, 1); };
      const RopeTable rows = rope_at(rope, at::arange(begin, end));
      const Trained one = on_one_rank(part(qkv).contiguous(), part(seed).contiguous(), shape, rows, sinks);
      if (sinks.defined()) all.sinks_grad += one.sinks_grad;
      part(all.out).copy_(one.out);
      part(all.grad).copy_(one.grad);
    }
  }
  return all;
}

Trained on_this_rank(const at::Tensor& qkv, const at::Tensor& seed, const AttentionShape& shape, const RopeTable& rope,
                     const ContextParallel& cp, bool recompute, const at::Tensor& sinks = {},
                     const std::shared_ptr<const DocumentStarts>& documents = nullptr) {
  const at::Tensor index = index_of(sequence_part(qkv.size(0), cp.size(), cp.rank(), cp.split.balance));
  const at::Tensor x = qkv.index_select(0, index).requires_grad_(true);
  const ContextParallel heads = cp.head_group(), keys = cp.key_group();
  const at::Tensor own = exchange_qkv(x, shape, heads);
  const AttentionShape part = shape_of_one_rank(shape, heads);
  const at::Tensor s = leaf(sinks);
  const at::Tensor own_sinks = s.defined() ? s.narrow(0, heads.rank() * part.heads, part.heads) : s;
  at::Tensor out;
  if (keys.active() || documents != nullptr) {
    const RopeTable rows = rope_at(rope, index_of(keys.part(own.size(0), keys.rank())));
    out = context_attention(rotated_heads(own, part, rows), {score_rule(part, own_sinks), documents}, keys, recompute);
  } else {
    out = causal_attention(own, part, rope, own_sinks);
  }
  out = positions_of_all_heads(out, heads);
  torch::autograd::backward({out}, {seed.index_select(0, index)});
  return {out.detach(), x.grad(), s.defined() ? cp.comm->all_reduce(s.grad()) : s};
}

double difference(const at::Tensor& got, const at::Tensor& want) {
  return (got - want).abs().max().item<double>() / want.abs().max().item<double>();
}

struct ContextCase {
  const char* name;
  AttentionShape shape;
  bool sinks = false;
};

const ContextCase kCases[] = {
    {"grouped heads", {.heads = 4, .groups = 2, .head_dim = 6}},
    {"one key head", {.heads = 4, .groups = 1, .head_dim = 6}},
    {"short window", {.heads = 4, .groups = 4, .head_dim = 6, .window = 3}},
    {"long window", {.heads = 4, .groups = 4, .head_dim = 6, .window = 17}},
    {"capped scores", {.heads = 4, .groups = 4, .head_dim = 6, .cap = 0.5}},
    {"capped scores of a window", {.heads = 4, .groups = 2, .head_dim = 6, .window = 5, .scale = 0.3, .cap = 0.5}},
    {"sinks", {.heads = 4, .groups = 2, .head_dim = 6}, true},
    {"sinks beside a window", {.heads = 4, .groups = 4, .head_dim = 6, .window = 3}, true},
};

struct Exchange {
  ContextExchange how;
  int ranks;
  int heads = 1;
};
const Exchange kExchanges[] = {{ContextExchange::kP2p, 2},
                               {ContextExchange::kP2p, 4},
                               {ContextExchange::kAllGather, 2},
                               {ContextExchange::kAllGather, 4},
                               {ContextExchange::kAllToAll, 2},
                               {ContextExchange::kAllToAll, 4},
                               {ContextExchange::kAllToAllP2p, 4, 2},
                               {ContextExchange::kAllToAllP2p, 8, 4}};

constexpr int64_t kPositions = 48, kSequences = 3;
// Documents of one token, of all, ending at borders of parts and in the middle of them.
const DocumentStarts kDocuments = {{0}, {0, 1, 2, 12, 31, 47}, {0, 6, 7, 24, 36}};

void expect_one_rank(const ContextCase& one, const Exchange& exchange, SequenceBalance balance,
                     const std::shared_ptr<const DocumentStarts>& documents) {
  const int64_t width = (one.shape.heads + 2 * one.shape.groups) * one.shape.head_dim;
  const at::Tensor qkv = wave({kPositions, kSequences, width}, 0.3),
                   seed = wave({kPositions, kSequences, 4 * one.shape.head_dim}, 1.7);
  const RopeTable rope = make_rope_table(kPositions, one.shape.head_dim, 100, at::TensorOptions(at::kDouble));
  const at::Tensor sinks = one.sinks ? wave({one.shape.heads}, 0.4, 2.0) : at::Tensor();
  const Trained want = documents ? on_one_rank(qkv, seed, one.shape, rope, sinks, *documents)
                                 : on_one_rank(qkv, seed, one.shape, rope, sinks);
  run_ranks(context_dims(exchange.ranks, exchange.heads), [&](RankContext& context) {
    const ContextParallel cp = context_parallel(context, exchange.how, balance);
    const at::Tensor index = index_of(sequence_part(kPositions, exchange.ranks, cp.rank(), balance));
    const bool recompute = balance == SequenceBalance::kZigzag && one.shape.window > 0;
    const Trained got = on_this_rank(qkv, seed, one.shape, rope, cp, recompute, sinks, documents);
    const std::string what = std::string(one.name) + ", " + std::string(name(exchange.how)) + ", " +
                             std::string(name(balance)) + ", rank " + std::to_string(cp.rank());
    EXPECT_LT(difference(got.out, want.out.index_select(0, index)), 1e-12) << what;
    EXPECT_LT(difference(got.grad, want.grad.index_select(0, index)), 1e-12) << what;
    if (one.sinks) {
      EXPECT_LT(difference(got.sinks_grad, want.sinks_grad), 1e-12) << what;
    }
  });
}

TEST(ContextAttention, EqualsOneRank) {
  for (const ContextCase& one : kCases)
    for (const Exchange& exchange : kExchanges)
      for (const SequenceBalance balance : kBalances) expect_one_rank(one, exchange, balance, nullptr);
}

TEST(ContextAttention, DocumentsAttendToThemselvesAlone) {
  const auto documents = std::make_shared<const DocumentStarts>(kDocuments);
  for (const ContextCase& one : {kCases[0], kCases[5], kCases[6]})
    for (const Exchange& exchange : kExchanges)
      for (const SequenceBalance balance : kBalances)
        if (exchange.ranks == 4) expect_one_rank(one, exchange, balance, documents);
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
    const ContextParallel cp = context_parallel(context, ContextExchange::kP2p, SequenceBalance::kZigzag);
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
