// Gradients that backward computes in 16 bits and that accumulate in fp32: the fp32 sum of every microbatch's gradient,
// bit for bit, however it is sharded.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/parallel/data/grad_reducer.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr int kMicrobatches = 4;

struct SixteenBitGrads {
  ParameterRegistry registry;
  explicit SixteenBitGrads(at::ScalarType type) : registry(1, type, at::kCPU) {
    for (int i = 0; i < 3; ++i) registry.create("w" + std::to_string(i), replicated({9, 7}), {}, true);
    registry.create("norm", replicated({5}), {InitKind::kOnes}, false).sum_grad_over_tp = true;
  }
  // What backward makes of a parameter: numbers whose sums in 16 bits would be others.
  at::Tensor made(const Parameter& p, int rank, int microbatch) const {
    const double salt = 0.1 * rank + 0.37 * microbatch + static_cast<double>(p.name.size() + p.name.back());
    return golden::wave(p.data.sizes(), salt, 3.0).to(p.data.scalar_type());
  }
  void backward(int rank, int microbatch) {
    at::Tensor loss = at::zeros({});
    for (const Parameter* p : registry.parameters())
      loss = loss + (p->data * made(*p, rank, microbatch)).sum().to(at::kFloat);
    torch::autograd::backward({loss}, {});
  }
  // Over microbatches in turn, or the pairs of a tree.
  at::Tensor sum_of(const Parameter& p, int rank, GradAccumulation accumulation) const {
    std::vector<at::Tensor> wide;
    for (int mb = 0; mb < kMicrobatches; ++mb) wide.push_back(made(p, rank, mb).to(at::kFloat));
    if (accumulation == GradAccumulation::kPairwise) return (wide[0] + wide[1]) + (wide[2] + wide[3]);
    return ((wide[0] + wide[1]) + wide[2]) + wide[3];
  }
};

using WideCase = std::tuple<at::ScalarType, GradAccumulation, size_t, bool>;

class WideGrads : public ::testing::TestWithParam<WideCase> {};

TEST_P(WideGrads, AreTheFp32SumsOfTheMicrobatches) {
  const auto [type, accumulation, stage, overlap] = GetParam();
  for (const auto& [dp, tp] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
    run_ranks(dims_of(dp, tp), [&](RankContext& context) {
      SixteenBitGrads f(type);
      GradReducer reducer(f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp),
                          {.bucket_bytes = 400,
                           .overlap = overlap,
                           .accumulation = accumulation,
                           .zero = kZeroStages[stage],
                           .grad_type = at::kFloat});
      EXPECT_EQ(reducer.buckets()[0].layout.element_bytes, 4);
      EXPECT_EQ(reducer.buckets()[0].parameter_bytes(), 2);
      reducer.begin_step({{f.registry.parameters(), kMicrobatches}});
      for (int mb = 0; mb < kMicrobatches; ++mb) {
        reducer.begin_pass({.microbatch = mb});
        f.backward(context.global_rank(), mb);
        reducer.end_pass();
      }
      reducer.finish();
      for (const Parameter* piece : reducer.owned()) {
        const auto [whole, begin] = reducer.origin_of(piece);
        const auto over = [&](const std::vector<int>& ranks) {
          at::Tensor sum = f.sum_of(*whole, ranks[0], accumulation);
          for (size_t i = 1; i < ranks.size(); ++i) sum = sum + f.sum_of(*whole, ranks[i], accumulation);
          return sum;
        };
        at::Tensor want = over(context.mesh().group(Axis::kDp, context.global_rank()).global_ranks);
        if (whole->sum_grad_over_tp && tp == 2)  // over tp first
          want = over({0, 1}) + over({2, 3});
        const at::Tensor& grad = piece->data.grad();
        ASSERT_EQ(grad.scalar_type(), at::kFloat);
        EXPECT_TRUE(at::equal(grad.flatten(), want.flatten().narrow(0, begin, grad.numel())))
            << whole->name << ", dp " << dp << ", tp " << tp;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, WideGrads,
                         ::testing::Combine(::testing::Values(at::kBFloat16, at::kHalf),
                                            ::testing::Values(GradAccumulation::kSequential,
                                                              GradAccumulation::kPairwise),
                                            ::testing::Values(0u, 1u, 2u), ::testing::Bool()));

// One microbatch on one rank: nothing is added, and the gradient is still the wide one.
TEST(WideGrads, OfASingleMicrobatchAreWidened) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    SixteenBitGrads f(at::kBFloat16);
    GradReducer reducer(f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp),
                        {.grad_type = at::kFloat});
    reducer.begin_step({{f.registry.parameters(), 1}});
    reducer.begin_pass({});
    f.backward(0, 0);
    reducer.end_pass();
    reducer.finish();
    for (const Parameter* p : f.registry.parameters())
      EXPECT_TRUE(at::equal(p->data.grad(), f.made(*p, 0, 0).to(at::kFloat)));
  });
}

}  // namespace
}  // namespace ranklab
