// Which ranks a gradient is summed over, and how often. Each rank's gradient is 2^rank, so the sum names the exact set
// of ranks that took part (Megatron-LM's detector).
#include "core/parallel/data/grad_reducer.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

struct PowersOfTwo {
  ParameterRegistry registry{1, at::kFloat, at::kCPU};
  PowersOfTwo() {
    for (int i = 0; i < 5; ++i) registry.create("w" + std::to_string(i), replicated({3, 7}), {}, true);
    registry.create("norm", replicated({5}), {InitKind::kOnes}, false).sum_grad_over_tp = true;
    registry.create("unused", replicated({2}), {}, true);
  }
  // A loss whose gradient is `value` everywhere (for "unused": none).
  void backward(double value) {
    at::Tensor loss = at::zeros({});
    for (const Parameter* p : registry.parameters()) {
      if (p->name != "unused") loss = loss + p->data.sum() * value;
    }
    torch::autograd::backward({loss}, {});
  }
};

double power_of_two(int exponent) { return static_cast<double>(int64_t{1} << exponent); }

struct Layout {
  int dp, tp;
};

class GradReducerTest : public ::testing::TestWithParam<std::tuple<Layout, bool, GradAccumulation, int>> {};

TEST_P(GradReducerTest, SumsOverExactlyItsGroups) {
  const auto [layout, overlap, accumulation, microbatches] = GetParam();
  run_ranks(dims_of(layout.dp, layout.tp), [&](RankContext& context) {
    PowersOfTwo f;
    GradReducer reducer(f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp),
                        {.bucket_bytes = 200, .overlap = overlap, .accumulation = accumulation});
    double of_dp = 0, of_all = 0;
    for (const int rank : context.mesh().group(Axis::kDp, context.global_rank()).global_ranks)
      of_dp += power_of_two(rank);
    for (int rank = 0; rank < context.world_size(); ++rank) of_all += power_of_two(rank);
    for (int step = 0; step < 2; ++step) {  // the second step must not see the first one's gradients
      reducer.begin_step({{f.registry.parameters(), microbatches}});
      for (int mb = 0; mb < microbatches; ++mb) {
        reducer.begin_pass({.microbatch = mb});
        f.backward(power_of_two(context.global_rank()));
        reducer.end_pass();
      }
      reducer.finish();
      for (const Parameter* p : f.registry.parameters()) {
        const double want = p->name == "unused" ? 0 : p->name == "norm" ? of_all : of_dp;
        ASSERT_TRUE(p->data.grad().defined()) << p->name;
        EXPECT_EQ(p->data.grad().sizes(), p->data.sizes());
        EXPECT_TRUE(p->data.grad().eq(want * microbatches).all().item<bool>())
            << p->name << " is " << p->data.grad().flatten()[0].item<double>() << ", want " << want * microbatches;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, GradReducerTest,
    ::testing::Combine(::testing::Values(Layout{1, 1}, Layout{4, 1}, Layout{1, 4}, Layout{2, 2}, Layout{4, 2},
                                         Layout{3, 2}),
                       ::testing::Bool(), ::testing::Values(GradAccumulation::kSequential, GradAccumulation::kPairwise),
                       ::testing::Values(1, 3)));

// Those whose parameters are whole again after the update.
std::vector<size_t> stages_that_gather() {
  std::vector<size_t> stages;
  for (size_t i = 0; i < kZeroStages.size(); ++i)
    if (kZeroStages[i].optimizer && !kZeroStages[i].parameters) stages.push_back(i);
  return stages;
}

class ShardedReduction : public ::testing::TestWithParam<std::tuple<Layout, bool, size_t, int, bool>> {};

// The owner of a piece gets the same sums, and its updated piece reaches every rank.
TEST_P(ShardedReduction, OwnersGetTheSumsAndEveryoneTheUpdates) {
  const auto [layout, overlap, stage, microbatches, each_microbatch] = GetParam();
  run_ranks(dims_of(layout.dp, layout.tp), [&](RankContext& context) {
    PowersOfTwo f;
    GradReducer reducer(
        f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp),
        {.bucket_bytes = 200, .overlap = overlap, .each_microbatch = each_microbatch, .zero = kZeroStages[stage]});
    ASSERT_EQ(reducer.shards(), layout.dp > 1);
    double of_dp = 0, of_all = 0;
    for (const int rank : context.mesh().group(Axis::kDp, context.global_rank()).global_ranks)
      of_dp += power_of_two(rank);
    for (int rank = 0; rank < context.world_size(); ++rank) of_all += power_of_two(rank);
    for (int step = 0; step < 2; ++step) {
      reducer.begin_step({{f.registry.parameters(), microbatches}});
      for (int mb = 0; mb < microbatches; ++mb) {
        reducer.begin_pass({.microbatch = mb});
        f.backward(power_of_two(context.global_rank()));
        reducer.end_pass();
      }
      reducer.finish();
      int64_t elements = 0;
      for (const Parameter* piece : reducer.owned()) {
        const double want = piece->name == "unused" ? 0 : piece->name == "norm" ? of_all : of_dp;
        ASSERT_EQ(piece->data.grad().sizes(), piece->data.sizes());
        EXPECT_TRUE(piece->data.grad().eq(want * microbatches).all().item<bool>()) << piece->name;
        elements += piece->data.numel();
        const at::NoGradGuard no_grad;
        piece->data.fill_(100.0 + step);
        piece->data.mutable_grad().reset();
      }
      const at::Tensor together = context.comm(Axis::kDp).all_reduce(at::full({1}, elements, at::kLong));
      EXPECT_EQ(together.item<int64_t>(), (5 * 21 + 5 + 2));
      reducer.gather_parameters();
      for (const Parameter* p : f.registry.parameters())
        EXPECT_TRUE(p->data.eq(100.0 + step).all().item<bool>()) << p->name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, ShardedReduction,
                         ::testing::Combine(::testing::Values(Layout{1, 2}, Layout{4, 1}, Layout{2, 2}, Layout{3, 2}),
                                            ::testing::Bool(), ::testing::ValuesIn(stages_that_gather()),
                                            ::testing::Values(1, 3), ::testing::Bool()));

// Units are complete when they are used, the next one's gather has begun then, and the others' have not.
TEST(OverlappedGathers, BringEachUnitItsUpdatesBeforeItsUse) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    ParameterRegistry registry(1, at::kFloat, at::kCPU);
    const std::vector<std::string> units = {"layers.0", "layers.1", "layers.2", "layers.3"};
    for (const std::string& unit : units) {
      registry.begin_unit({.name = unit});
      registry.create(unit + ".w", replicated({64}), {}, true);
    }
    GradReducer reducer(registry.parameters(), context.comm(Axis::kDp), nullptr,
                        {.bucket_bytes = 1, .zero = kZeroStages[1]});
    OverlappedGathers gathers;
    reducer.overlap_gathers(gathers);
    const auto use = [&](size_t unit) { gathers.enter(units[unit], unit + 1 < 4 ? units[unit + 1] : ""); };
    const auto update = [&](double value) {
      const at::NoGradGuard no_grad;
      for (const Parameter* piece : reducer.owned()) piece->data.fill_(value);
      reducer.gather_parameters();
    };
    const auto has = [&](size_t unit, double value) {
      return registry.parameters()[unit]->data.eq(value).all().item<bool>();
    };
    for (size_t unit = 0; unit < 4; ++unit) use(unit);  // before the first update nothing is on its way
    for (const double value : {1.0, 2.0}) {
      update(value);
      gathers.begin();
      for (size_t unit = 0; unit < 4; ++unit) {
        EXPECT_FALSE(has(unit, value)) << unit;
        use(unit);
        EXPECT_TRUE(has(unit, value)) << unit;
      }
    }
    update(3.0);
    gathers.begin();
    use(0);
    EXPECT_TRUE(has(0, 3.0) && !has(1, 3.0));
    EXPECT_THROW(gathers.begin(), Error);
    gathers.settle();
    for (size_t unit = 0; unit < 4; ++unit) EXPECT_TRUE(has(unit, 3.0)) << unit;
  });
}

// A bucket of two stages is reduced once each has a gradient for it, and not before the pass has brought all of its.
TEST(GradReducer, AMicrobatchIsReducedWithAllThatItsPassBrings) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    ParameterRegistry registry(1, at::kFloat, at::kCPU);
    Parameter& both = registry.create("both", replicated({4}), {}, true);
    Parameter& first = registry.create("first", replicated({4}), {}, true);
    Parameter& second = registry.create("second", replicated({4}), {}, true);
    int reductions = 0;
    GradReducer reducer(registry.parameters(), context.comm(Axis::kDp), nullptr,
                        {.each_microbatch = true, .zero = kZeroStages[2], .watch = [&](ZeroState state, const auto&) {
                           reductions += state == ZeroState::kReduced;
                         }});
    const auto pass = [&](int stage, int microbatch, const std::vector<std::pair<Parameter*, double>>& grads) {
      reducer.begin_pass({.stage = stage, .microbatch = microbatch});
      for (const auto& [p, value] : grads) torch::autograd::backward({(p->data * value).sum()}, {});
      reducer.end_pass();
    };
    // Of two chains, so that `both` has each stage's microbatches.
    reducer.begin_step({{{&both, &first}, 2, 0}, {{&both, &second}, 2, 1}});
    pass(1, 0, {{&second, 1.0}, {&both, 2.0}});
    EXPECT_EQ(reductions, 0);
    pass(0, 0, {{&first, 4.0}, {&both, 8.0}});  // the last that the bucket waits for comes first
    EXPECT_EQ(reductions, 1);
    pass(0, 1, {{&both, 16.0}, {&first, 32.0}});
    pass(1, 1, {{&both, 64.0}, {&second, 128.0}});
    reducer.finish();
    EXPECT_EQ(reductions, 2);
    for (const Parameter* piece : reducer.owned()) {
      const double want = piece->name == "both" ? 90 : piece->name == "first" ? 36 : 129;
      EXPECT_TRUE(piece->data.grad().eq(2 * want).all().item<bool>()) << piece->name << piece->data.grad();
    }
  });
}

TEST(GradReducer, BucketsFollowTheSizeLimit) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    const auto buckets = [&](int64_t bytes) {
      PowersOfTwo f;
      return GradReducer(f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp),
                         {.bucket_bytes = bytes})
          .buckets()
          .size();
    };
    EXPECT_EQ(buckets(1), 7u);           // one each
    EXPECT_EQ(buckets(1 << 20), 2u);     // all, and the one that is summed over tp
    EXPECT_EQ(buckets(2 * 32 * 4), 4u);  // two padded weights of 32 elements fit
  });
}

// "layers.1" is not another bucket of "layers.10", which has the same first letters.
TEST(GradReducer, BucketsOfOneUnitAreNumbered) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    ParameterRegistry registry(1, at::kFloat, at::kCPU);
    for (const std::string unit : {"layers.1", "layers.10"}) {
      registry.begin_unit({.name = unit});
      for (const char* weight : {".a", ".b"}) registry.create(unit + weight, replicated({32}), {}, true);
    }
    const GradReducer reducer(registry.parameters(), context.comm(Axis::kDp), nullptr, {.bucket_bytes = 1});
    std::vector<std::string> labels;
    for (const GradBucket& bucket : reducer.buckets()) labels.push_back(bucket.label);
    EXPECT_EQ(labels, (std::vector<std::string>{"layers.10", "layers.10 #2", "layers.1", "layers.1 #2"}));
  });
}

TEST(GradReducer, GradientsOfATiedParameterCountOnce) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    ParameterRegistry registry(1, at::kFloat, at::kCPU);
    const at::Tensor w = registry.create("w", replicated({4}), {}, true).data;
    GradReducer reducer(registry.parameters(), context.comm(Axis::kDp), nullptr, {});
    reducer.begin_step({{registry.parameters(), 1}});
    reducer.begin_pass({});
    torch::autograd::backward({(w * 3.0).sum() + (w * 4.0).sum()}, {});
    reducer.end_pass();
    reducer.finish();
    EXPECT_TRUE(w.grad().eq(14.0).all().item<bool>());
  });
}

// Two stages of a rank whose microbatches interleave, one with its backward in two parts, and a parameter of both.
TEST(GradReducer, StagesAndPartsOfABackwardAddUp) {
  for (const int dp : {1, 2}) {
    run_ranks(dims_of(dp, 1), [&](RankContext& context) {
      ParameterRegistry registry(1, at::kFloat, at::kCPU);
      Parameter& both = registry.create("both", replicated({4}), {}, true);
      Parameter& first = registry.create("first", replicated({4}), {}, true);
      Parameter& second = registry.create("second", replicated({4}), {}, true);
      GradReducer reducer(registry.parameters(), context.comm(Axis::kDp), nullptr, {.bucket_bytes = 1});
      const auto pass = [&](int stage, int microbatch, bool completes, const Parameter& p, double value) {
        reducer.begin_pass({.stage = stage, .microbatch = microbatch, .completes = completes});
        torch::autograd::backward({(p.data * value).sum()}, {});
        reducer.end_pass();
      };
      reducer.begin_step({{{&both, &first}, 2}, {{&both, &second}, 2}});
      pass(1, 0, false, second, 1.0);
      pass(1, 0, true, both, 2.0);
      pass(0, 0, false, first, 4.0);
      pass(1, 1, true, second, 8.0);
      EXPECT_THROW(reducer.finish(), Error);
      pass(0, 0, true, both, 16.0);
      pass(0, 1, true, first, 32.0);
      reducer.finish();
      EXPECT_TRUE(both.data.grad().eq(dp * 18.0).all().item<bool>()) << both.data.grad();
      EXPECT_TRUE(first.data.grad().eq(dp * 36.0).all().item<bool>()) << first.data.grad();
      EXPECT_TRUE(second.data.grad().eq(dp * 9.0).all().item<bool>()) << second.data.grad();
    });
  }
}

TEST(GradReducer, RefusesMisuse) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    PowersOfTwo f;
    EXPECT_THROW(GradReducer(f.registry.parameters(), context.comm(Axis::kDp), nullptr, {}), Error);
    GradReducer reducer(f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp), {});
    EXPECT_THROW(reducer.begin_step({{f.registry.parameters(), 0}}), Error);
    reducer.begin_step({{f.registry.parameters(), 2}});
    EXPECT_THROW(reducer.begin_pass({.stage = 1}), Error);
    EXPECT_THROW(reducer.finish(), Error);
    reducer.begin_pass({});
    f.backward(1.0);
    EXPECT_THROW(f.backward(1.0), Error);
  });
}

TEST(GradReducer, HooksLeaveWithTheReducer) {
  run_ranks(dims_of(2, 1), [](RankContext& context) {
    PowersOfTwo f;
    { GradReducer reducer(f.registry.parameters(), context.comm(Axis::kDp), &context.comm(Axis::kTp), {}); }
    f.backward(2.0);
    EXPECT_TRUE(f.registry.find("w0")->data.grad().eq(2.0).all().item<bool>());
  });
}

}  // namespace
}  // namespace ranklab
