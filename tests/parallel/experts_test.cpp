// The parts of a mixture of experts with answers known by hand: the router, capacity, balancing losses, grouped
// products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "core/nn/activation.h"
#include "core/nn/router.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/expert/balance_loss.h"
#include "core/parallel/expert/capacity.h"
#include "core/parallel/expert/expert_mlp.h"
#include "core/parallel/expert/grouped_linear.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::wave;
using ::testing::ElementsAre;

std::vector<int64_t> row(const at::Tensor& x, int64_t i) {
  const at::Tensor dense = x[i].contiguous();
  return {dense.const_data_ptr<int64_t>(), dense.const_data_ptr<int64_t>() + dense.numel()};
}

at::Tensor logits(std::vector<double> values) {
  const auto experts = static_cast<int64_t>(values.size());
  return at::tensor(values, at::kDouble).view({1, experts});
}

TEST(Router, EqualScoresGoToTheLowestIndex) {
  const MoeConfig c{.num_experts = 6, .topk = 3};
  EXPECT_THAT(row(choose_experts(logits({1, 2, 2, 2, 2, 1}), {}, c).experts_TK, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(row(choose_experts(at::zeros({1, 6}, at::kDouble), {}, c).experts_TK, 0), ElementsAre(0, 1, 2));
}

TEST(Router, SoftmaxWeightsAreNormalizedAndScaled) {
  MoeConfig c{.num_experts = 3, .topk = 2, .scaling_factor = 2.5};
  // softmax of ln 1, ln 2, ln 5: 1/8, 2/8, 5/8
  const at::Tensor x = logits({0, std::log(2.0), std::log(5.0)});
  const at::Tensor weights = choose_experts(x, {}, c).weights_TK;
  EXPECT_NEAR(weights[0][0].item<double>(), 2.5 * 5 / 7, 1e-15);
  EXPECT_NEAR(weights[0][1].item<double>(), 2.5 * 2 / 7, 1e-15);
  c.normalize_topk = false;
  c.scaling_factor = 1;
  EXPECT_NEAR(choose_experts(x, {}, c).weights_TK[0][1].item<double>(), 2.0 / 8, 1e-15);
}

TEST(Router, ASingleExpertKeepsItsScoreOrGetsOne) {
  MoeConfig c{.num_experts = 3, .topk = 1};
  const at::Tensor x = logits({0, std::log(2.0), std::log(5.0)}).requires_grad_();
  EXPECT_NEAR(choose_experts(x, {}, c).weights_TK.item<double>(), 5.0 / 8, 1e-15);
  c.normalize_top1 = true;
  const at::Tensor weight = choose_experts(x, {}, c).weights_TK;
  EXPECT_EQ(weight.item<double>(), 1);
  weight.backward();
  EXPECT_EQ(x.grad().abs().max().item<double>(), 0);  // nothing for the router to learn from, nor a sign
  c.normalize_topk = false;
  EXPECT_NEAR(choose_experts(x, {}, c).weights_TK.item<double>(), 5.0 / 8, 1e-15);
}

// The bias affects which experts are chosen, and is not part of the weight.
TEST(Router, BiasMovesTheChoiceOnly) {
  const MoeConfig c{.num_experts = 3, .topk = 1, .score = RouterScore::kSigmoid, .normalize_topk = false};
  const at::Tensor bias = at::tensor({0.6, 0.0, 0.0}, at::kDouble);
  const ExpertChoice choice = choose_experts(logits({0, 1, 2}), bias, c);
  EXPECT_THAT(row(choice.experts_TK, 0), ElementsAre(0));
  EXPECT_NEAR(choice.weights_TK[0][0].item<double>(), 0.5, 1e-15);
}

// A group counts with the sum of its two best scores: group 1 (0.6 + 0.6) beats group 0, which has the best expert (0.9
// + 0.1); with the maximum per group, as DeepSeek-V2 and nano-train have it, group 0 wins.
TEST(Router, GroupsCountWithTheirBestExperts) {
  MoeConfig c{.num_experts = 6, .topk = 2, .score = RouterScore::kSigmoid, .num_groups = 2, .group_topk = 1};
  const auto logit = [](double p) { return std::log(p / (1 - p)); };
  const at::Tensor x = logits({logit(0.9), logit(0.1), logit(0.1), logit(0.3), logit(0.6), logit(0.6)});
  EXPECT_THAT(row(choose_experts(x, {}, c).experts_TK, 0), ElementsAre(4, 5));
  c.group_best = 1;
  EXPECT_THAT(row(choose_experts(x, {}, c).experts_TK, 0), ElementsAre(0, 1));
  c.group_best = 3;  // 1.5 against 1.1
  EXPECT_THAT(row(choose_experts(x, {}, c).experts_TK, 0), ElementsAre(4, 5));
}

TEST(Router, ExpertsInTurnShareTokensEvenly) {
  const MoeConfig c{.num_experts = 4, .topk = 3};
  const at::Tensor experts = experts_in_turn(at::arange(4, at::kLong), c);
  EXPECT_THAT(row(experts, 1), ElementsAre(3, 0, 1));
  const at::Tensor counts = at::bincount(experts.reshape({-1}), {}, 4);
  EXPECT_TRUE(counts.eq(3).all().item<bool>());
}

TEST(Capacity, KeepsTheLargestWeightsThenTheEarlierToken) {
  // 4 tokens, k 1, 2 experts: ceil(1.0 x 4 / 2) = 2 each.
  const MoeConfig c{.num_experts = 2, .topk = 1, .capacity_factor = 1.0};
  const at::Tensor experts = at::tensor({0, 0, 0, 0}, at::kLong).view({4, 1});
  const at::Tensor weights = at::tensor({0.2, 0.5, 0.5, 0.5}, at::kDouble).view({4, 1});
  const at::Tensor kept = within_capacity(experts, weights, c, {}).view({-1}).to(at::kLong).view({1, 4});
  EXPECT_THAT(row(kept, 0), ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(expert_capacity(4, {.num_experts = 64, .topk = 1, .capacity_factor = 1.0}), 1);
  EXPECT_EQ(expert_capacity(100, {.num_experts = 8, .topk = 2, .capacity_factor = 1.25}), 32);
}

// Perfect balance gives 1 a token (Switch, eq. 4); all tokens to one of four experts with certainty gives 4.
TEST(BalanceLoss, OneWhenEvenAndEWhenCollapsed) {
  const MoeConfig c{.num_experts = 4, .topk = 1};
  const at::Tensor even = at::eye(4, at::kDouble) * 1000;
  EXPECT_NEAR(balance_loss_sum(choose_experts(even, {}, c), c, {}).item<double>(), 4 * 1.0, 1e-12);
  at::Tensor collapsed = at::zeros({4, 4}, at::kDouble);
  collapsed.select(1, 2).fill_(1000);
  EXPECT_NEAR(balance_loss_sum(choose_experts(collapsed, {}, c), c, {}).item<double>(), 4 * 4.0, 1e-12);
}

// Two sequences, each collapsed on an expert of its own: even over the microbatch, not within a sequence.
TEST(BalanceLoss, SequencesAreBalancedApart) {
  const MoeConfig c{.num_experts = 2, .topk = 1};
  const at::Tensor x = (at::eye(2, at::kDouble) * 1000).repeat({3, 1});  // t % 2 is the sequence
  const ExpertChoice choice = choose_experts(x, {}, c);
  EXPECT_NEAR(balance_loss_sum(choice, c, {.sequences = 2, .per_sequence = false}).item<double>(), 6.0, 1e-12);
  EXPECT_NEAR(balance_loss_sum(choice, c, {.sequences = 2, .per_sequence = true}).item<double>(), 12.0, 1e-12);
}

// DeepSeek-V3, eq. 18, and Megatron-LM's compute_routing_scores_for_aux_loss: f counts the best of the scores, not
// where bias or groups sent the tokens. Both tokens like expert 0 best; the bias sends them to 1, the groups to 2
// and 3.
TEST(BalanceLoss, CountsTheBestScoresWhateverBiasAndGroupsChose) {
  const auto logit = [](double p) { return std::log(p / (1 - p)); };
  const at::Tensor x = logits({logit(0.9), logit(0.1), logit(0.6), logit(0.6)}).repeat({2, 1});
  MoeConfig c{.num_experts = 4, .topk = 1, .score = RouterScore::kSigmoid, .expert_bias = true};
  const double collapsed = 2 * 4 * 0.9 / 2.2;
  const ExpertChoice biased = choose_experts(x, at::tensor({0.0, 1.0, 0.0, 0.0}, at::kDouble), c);
  EXPECT_THAT(row(biased.experts_TK, 0), ElementsAre(1));
  EXPECT_NEAR(balance_loss_sum(biased, c, {}).item<double>(), collapsed, 1e-12);
  c.expert_bias = false;
  c.num_groups = 2;
  const ExpertChoice grouped = choose_experts(x, {}, c);
  EXPECT_THAT(row(grouped.experts_TK, 0), ElementsAre(2));
  EXPECT_NEAR(balance_loss_sum(grouped, c, {}).item<double>(), collapsed, 1e-12);
  // Experts that are forced on tokens have no scores to go by.
  c.force_balance = true;
  EXPECT_NEAR(balance_loss_sum(grouped, c, {}).item<double>(), 2 * 4 * 0.6 / 2.2, 1e-12);
}

TEST(BalanceLoss, AttachedLossGetsTheScaleBesideTheGradient) {
  const at::Tensor x = at::ones({2}).set_requires_grad(true);
  const at::Tensor y = at::ones({3}).set_requires_grad(true);
  const at::Tensor out = attach_loss(x * 2, y.square().sum(), 0.25);
  EXPECT_TRUE(at::equal(out, x * 2));
  torch::autograd::backward({out.sum()}, {});
  EXPECT_TRUE(at::equal(x.grad(), at::full({2}, 2.0, at::kDouble)));
  EXPECT_TRUE(at::equal(y.grad(), at::full({3}, 0.5, at::kDouble)));
}

struct Products {
  at::Tensor out, grad_rows;
  std::vector<at::Tensor> grad_weights;
};

constexpr auto grouped = [](const auto&... of) { return grouped_linear(of...); };

template <typename Linear>
Products products_of(const Linear& linear, const std::vector<int64_t>& counts, bool deferred) {
  int64_t rows = 0;
  for (const int64_t count : counts) rows += count;
  const at::Tensor x = wave({rows, 5}, 0.1).set_requires_grad(true);
  std::vector<at::Tensor> weights;
  for (size_t e = 0; e < counts.size(); ++e)
    weights.push_back(wave({3, 5}, 0.2 + static_cast<double>(e)).set_requires_grad(true));
  Products result{linear(x, counts, weights), {}, {}};
  WeightGradQueue queue;
  {
    std::optional<DeferWeightGrads> defer;
    if (deferred) defer.emplace(queue);
    torch::autograd::backward({(result.out * wave({rows, 3}, 2.0)).sum()}, {});
  }
  queue.run();
  result.grad_rows = x.grad();
  for (const at::Tensor& weight : weights) result.grad_weights.push_back(weight.grad());
  return result;
}

TEST(GroupedLinear, EqualsALinearPerExpertAlsoWithoutTokensAndDeferred) {
  const std::vector<int64_t> counts = {4, 0, 7, 1};
  const Products want = products_of(grouped_linear_reference, counts, false);
  for (const bool deferred : {false, true}) {
    const Products got = products_of(grouped, counts, deferred);
    EXPECT_LT((got.out - want.out).abs().max().item<double>(), 1e-14);
    EXPECT_LT((got.grad_rows - want.grad_rows).abs().max().item<double>(), 1e-14);
    for (size_t e = 0; e < counts.size(); ++e) {
      ASSERT_TRUE(got.grad_weights[e].defined()) << e;  // zero for the expert without tokens, not missing
      EXPECT_LT((got.grad_weights[e] - want.grad_weights[e]).abs().max().item<double>(), 1e-14) << e;
    }
  }
}

TEST(GroupedLinear, ReadsMatricesWhereTheyAreIfTheyAreEquallyFarApart) {
  const at::Tensor buffer = wave({3, 12, 8}, 0.1);
  const auto is_there = [&](const std::vector<at::Tensor>& matrices) {
    const at::Tensor all = stacked(matrices);
    EXPECT_TRUE(at::equal(all, at::stack(matrices)));
    return all.data_ptr() == matrices[0].data_ptr();
  };
  const auto part = [&](int64_t e, int64_t begin) { return buffer[e].narrow(0, begin, 4); };
  EXPECT_TRUE(is_there({part(0, 2), part(1, 2), part(2, 2)})) << "with others between them";
  EXPECT_TRUE(is_there({part(0, 0).t(), part(0, 4).t(), part(0, 8).t()})) << "side by side, transposed";
  EXPECT_TRUE(is_there({part(1, 1)})) << "one";
  EXPECT_FALSE(is_there({part(0, 0), part(0, 4), part(1, 0)})) << "other distances";
  EXPECT_FALSE(is_there({part(2, 0), part(1, 0), part(0, 0)})) << "backwards";
  EXPECT_FALSE(is_there({part(0, 0), part(0, 4).contiguous().t().contiguous().t()})) << "another layout";
  EXPECT_FALSE(is_there({part(0, 0), part(0, 0)})) << "twice the same";
}

// The SwiGLU MLPs of experts in blocks of rows, held to whole products in plain ATen ops.
struct Mlps {
  at::Tensor out, grad_rows;
  std::vector<at::Tensor> grad_weights;
};

constexpr int64_t kHidden = 6, kWidth = 10;

template <typename Mlp>
Mlps mlps_of(const Mlp& mlp, const std::vector<int64_t>& counts, at::ScalarType type, bool deferred) {
  const int64_t rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto leaf = [&](at::IntArrayRef sizes, double phase) {
    return wave(sizes, phase).to(type).set_requires_grad(true);
  };
  const at::Tensor x = leaf({rows, kHidden}, 0.1);
  std::vector<at::Tensor> up, down;
  for (size_t e = 0; e < counts.size(); ++e) {
    up.push_back(leaf({2 * kWidth, kHidden}, 0.2 + static_cast<double>(e)));
    down.push_back(leaf({kHidden, kWidth}, 0.3 + static_cast<double>(e)));
  }
  Mlps result{mlp(x, counts, up, down), {}, {}};
  WeightGradQueue queue;
  {
    std::optional<DeferWeightGrads> defer;
    if (deferred) defer.emplace(queue);
    torch::autograd::backward({(result.out * wave({rows, kHidden}, 2.0).to(type)).sum()}, {});
  }
  EXPECT_EQ(up[0].grad().defined(), !deferred);
  queue.run();
  result.grad_rows = x.grad();
  for (const auto* weights : {&up, &down})
    for (const at::Tensor& weight : *weights) result.grad_weights.push_back(weight.grad());
  return result;
}

constexpr auto in_blocks = [](const auto&... of) { return expert_mlp(of...); };
constexpr auto whole_products = [](const at::Tensor& rows, const std::vector<int64_t>& counts,
                                   const std::vector<at::Tensor>& up, const std::vector<at::Tensor>& down) {
  return grouped_linear_reference(swiglu_reference(grouped_linear_reference(rows, counts, up)), counts, down);
};

TEST(ExpertMlp, BlocksEqualWholeProductsAlsoWithoutTokens) {
  // More rows than a block of this width holds, one row, none, and a rest that is no multiple of 32.
  const std::vector<int64_t> counts = {18000, 1, 0, 75};
  const int64_t bytes_of_a_row = 3 * kWidth * 8;
  ASSERT_GT(expert_blocks(counts, bytes_of_a_row).size(), counts.size() + 2);
  const Mlps want = mlps_of(whole_products, counts, at::kDouble, false);
  const Mlps got = mlps_of(in_blocks, counts, at::kDouble, false);
  const auto distance = [](const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).abs().max() / b.abs().max().clamp_min(1)).item<double>();
  };
  EXPECT_LT(distance(got.out, want.out), 1e-13);
  EXPECT_LT(distance(got.grad_rows, want.grad_rows), 1e-13);
  for (size_t i = 0; i < want.grad_weights.size(); ++i) {
    ASSERT_TRUE(got.grad_weights[i].defined()) << i;  // zero for the expert without tokens, not missing
    EXPECT_LT(distance(got.grad_weights[i], want.grad_weights[i]), 1e-12) << i;
  }
  EXPECT_EQ(got.grad_weights[2].abs().max().item<double>(), 0);
}

TEST(ExpertMlp, LaterWeightGradientsHaveTheSameBits) {
  const std::vector<int64_t> counts = {40000, 33, 0};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Mlps now = mlps_of(in_blocks, counts, type, false), later = mlps_of(in_blocks, counts, type, true);
    EXPECT_TRUE(at::equal(now.grad_rows, later.grad_rows));
    for (size_t i = 0; i < now.grad_weights.size(); ++i)
      EXPECT_TRUE(at::equal(now.grad_weights[i], later.grad_weights[i])) << i;
  }
}

// Products of few numbers of rows, so that a library prepares each once.
TEST(ExpertMlp, RowsAreCutIntoFewSizes) {
  std::set<int64_t> sizes;
  for (int64_t rows = 0; rows < 3000; ++rows) {
    int64_t next = 0;
    for (const ExpertBlock& block : expert_blocks({rows}, 4224)) {
      EXPECT_EQ(block.begin, next);
      next += block.rows;
      sizes.insert(block.rows);
    }
    ASSERT_EQ(next, rows);
  }
  EXPECT_LE(*sizes.rbegin(), (2 << 20) / 4224);
  EXPECT_LE(sizes.size(), 31u + 15u);
  EXPECT_EQ(expert_blocks({7}, int64_t{1} << 30).size(), 1u);  // a row wider than a block
}

}  // namespace
}  // namespace ranklab
