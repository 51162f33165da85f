// DiLoCo's outer updates on weights that move by a known amount in each step: the exact parameter histories that
// pytorch/torchft's regression tests pin (diloco_regression_test.py, mocked updates), also of a replica that is lost
// and starts again from what was saved.
#include "core/runtime/outer_optimizer.h"

#include <gtest/gtest.h>

#include "core/config/settings/sources.h"
#include "core/runtime/provide.h"
#include "core/runtime/wrapped_optimizer.h"
#include "core/sim/aten.h"
#include "tests/parallel/run_ranks.h"
#include "tests/runtime/checkpoint_run.h"

namespace ranklab {
namespace {

constexpr double kMovement = -2;

// Two layers of one weight each, which an optimizer with nothing to learn moves.
class MovedWeights final : public RankOptimizer {
 public:
  MovedWeights() {
    for (int64_t layer = 0; layer < 2; ++layer) {
      parameters_[layer].name = "layers." + std::to_string(layer) + ".weight";
      parameters_[layer].unit = {.name = "layers", .place = ModelUnit::Place::kLayer, .layer = layer};
      weights_[layer] = at::ones({1});
      moments_[layer] = at::zeros({1});
    }
  }
  std::vector<OwnedState> owned_state() override {
    std::vector<OwnedState> states;
    for (size_t i = 0; i < 2; ++i)
      states.push_back({.parameter = &parameters_[i],
                        .begin = 0,
                        .end = 1,
                        .weight = weights_[i],
                        .moments = {{"exp_avg", moments_[i]}}});
    return states;
  }
  void restored(int64_t, const SkippedSteps&) override { ++restored_; }
  void begin_step(int64_t) override {}
  void begin_pass(const GradPass&) override {}
  void end_pass() override {}
  double finish_step(double) override {
    for (size_t i = 0; i < 2; ++i) weights_[i].add_(kMovement), moments_[i].add_(1);
    return 0;
  }
  int restored_ = 0;

 private:
  Parameter parameters_[2];
  at::Tensor weights_[2], moments_[2];
};

RunPlan fragments_plan(int64_t delay, double alpha) {
  TrainConfig c;
  c.parallel = {.world = 2, .tp = 1, .pp = 1};
  c.model.num_layers = 2;
  c.global_batch_size = 2;
  c.diloco = {.sync_steps = 6,
              .fragments = 2,
              .sync_delay = delay,
              .update_alpha = alpha,
              .outer_lr = 2,
              .outer_momentum = 0,
              .outer_nesterov = false};
  return resolve(c);
}

using Values = std::vector<std::vector<double>>;  // [weight][step]

struct History {
  int64_t delay;
  double alpha;
  Values weights;  // after 1, 2, ... steps
};

const std::vector<History> kHistories = {
    {0,
     0,
     {{-1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59},
      {-1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53}}},
    {0,
     0.5,
     {{-1, -3, -8, -10, -12, -14, -16, -18, -24.5, -26.5, -28.5, -30.5, -32.5, -34.5, -40.25},
      {-1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38}}},
    {0,
     1,
     {{-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29},
      {-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29}}},
    {1,
     0,
     {{-1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47},
      {-1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45}}},
    {1,
     0.5,
     {{-1, -3, -6, -8, -10, -12, -14, -16, -21.5, -23.5, -25.5, -27.5, -29.5, -31.5, -35.75},
      {-1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35}}},
    {1,
     1,
     {{-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29},
      {-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29}}},
};

// The outer parameters after 3, 6, 9 and 12 steps.
const std::vector<Values> kOuter = {
    {{-11, -11, -35, -35}, {1, -23, -23, -47}}, {{-11, -11, -29, -29}, {1, -23, -23, -35}},
    {{-11, -11, -23, -23}, {1, -23, -23, -23}}, {{-7, -7, -27, -27}, {1, -19, -19, -39}},
    {{-7, -7, -25, -25}, {1, -19, -19, -31}},   {{-7, -7, -23, -23}, {1, -19, -19, -23}}};

std::unique_ptr<RankOptimizer> optimizer_of(RankContext& context, const RunPlan& plan) {
  return with_outer_updates(std::make_unique<MovedWeights>(), context, plan);
}

// Whatever a checkpoint holds, as a new process reads it. RETURNS: the optimizer that continues after `steps` steps.
std::unique_ptr<RankOptimizer> reloaded(RankOptimizer& from, RankContext& context, const RunPlan& plan, int64_t steps) {
  std::unique_ptr<RankOptimizer> to = optimizer_of(context, plan);
  const std::vector<OwnedState> saved = from.saved_state(), fresh = to->saved_state();
  for (size_t i = 0; i < saved.size(); ++i) {
    fresh[i].weight.copy_(saved[i].weight);
    for (size_t m = 0; m < saved[i].moments.size(); ++m) fresh[i].moments[m].second.copy_(saved[i].moments[m].second);
    for (size_t m = 0; m < saved[i].of_replica.size(); ++m)
      fresh[i].of_replica[m].second.copy_(saved[i].of_replica[m].second);
  }
  to->restored(0, {});
  to->set_step(steps);
  return to;
}

TEST(OuterOptimizer, HistoriesAreThoseOfTorchft) {
  for (size_t row = 0; row < kHistories.size(); ++row) {
    const History& want = kHistories[row];
    const RunPlan plan = fragments_plan(want.delay, want.alpha);
    for (const int64_t lost_after : {0, 2, 5, 8}) {  // 0: never; the others are while a synchronization runs, or not
      run_ranks(plan.mesh.dims(), [&](RankContext& context) {
        std::unique_ptr<RankOptimizer> optimizer = optimizer_of(context, plan);
        for (size_t step = 0; step < want.weights[0].size(); ++step) {
          if (step > 0 && static_cast<int64_t>(step) == lost_after)
            optimizer = reloaded(*optimizer, context, plan, lost_after);
          optimizer->finish_step(0.1);
          const std::vector<OwnedState> states = optimizer->owned_state(), saved = optimizer->saved_state();
          for (size_t weight = 0; weight < 2; ++weight) {
            ASSERT_EQ(states[weight].weight.item<double>(), want.weights[weight][step])
                << "row " << row << ", weight " << weight << " after step " << step << ", lost after " << lost_after;
            if (step % 3 == 2 && step < 12) {
              ASSERT_EQ(saved[weight].weight.item<double>(), kOuter[row][weight][step / 3]) << "row " << row;
            }
          }
        }
      });
    }
  }
}

// The moments that a replica's optimizer keeps are its own; the outer momentum is shared.
TEST(OuterOptimizer, SavesTheReplicasOwnStateApart) {
  const RunPlan plan = fragments_plan(1, 0.5);
  run_ranks(plan.mesh.dims(), [&](RankContext& context) {
    const auto optimizer = optimizer_of(context, plan);
    const std::vector<OwnedState> saved = optimizer->saved_state();
    ASSERT_EQ(saved.size(), 2u);
    std::vector<std::string> shared, own;
    for (const auto& [name, tensor] : saved[0].moments) shared.push_back(name);
    for (const auto& [name, tensor] : saved[0].of_replica) own.push_back(name);
    EXPECT_EQ(shared, (std::vector<std::string>{"outer_momentum", "outer_gradient"}));
    EXPECT_EQ(own, (std::vector<std::string>{"exp_avg", kReplicaWeight}));
  });
}

// Replicas that move differently: the mean of their movements counts, and momentum is PyTorch's (Nesterov).
TEST(OuterOptimizer, TakesTheMeanOfTheReplicasMovements) {
  TrainConfig c = fragments_plan(0, 0).config;
  c.diloco = {.sync_steps = 1, .outer_lr = 0.7, .outer_momentum = 0.9};
  const RunPlan plan = resolve(c);
  run_ranks(plan.mesh.dims(), [&](RankContext& context) {
    const auto optimizer = optimizer_of(context, plan);
    double outer = 1, buffer = 0;
    for (int step = 0; step < 4; ++step) {
      const double further = context.global_rank() == 0 ? 0.5 * step : 3;  // on top of kMovement
      for (const OwnedState& state : optimizer->owned_state()) state.weight.add_(further);
      optimizer->finish_step(0.1);
      const double gradient = -(kMovement + (0.5 * step + 3) / 2);
      buffer = 0.9 * buffer + gradient;
      outer -= 0.7 * (gradient + 0.9 * buffer);
      for (const OwnedState& state : optimizer->owned_state())
        EXPECT_NEAR(state.weight.item<double>(), outer, 1e-5) << "step " << step;
    }
  });
}

std::shared_ptr<OptimizerRuntime> momentum_sgd() {
  return provide_optimizer([](std::vector<Parameter*> parameters, const RunPlan&) {
    return make_sgd(std::move(parameters), {.momentum = 0.9});
  });
}

// A program's own optimizer: around that of the runtime, or one that knows nothing of DiLoCo.
class OwnRuntime final : public OptimizerRuntime {
 public:
  explicit OwnRuntime(bool knows) : knows_(knows) {}
  bool makes_values() const override { return true; }
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    RunPlan plain = plan;
    plain.config.diloco.sync_steps = 0;
    return std::make_unique<WrappedOptimizer>(momentum_sgd()->initialize(model, ctx, knows_ ? plan : plain));
  }

 private:
  bool knows_;
};

std::vector<std::pair<uint64_t, uint64_t>> curve_with(std::shared_ptr<OptimizerRuntime> runtime) {
  using namespace checkpoint_runs;
  const RunPlan plan = plan_of(kTinyRun + kDense + Settings{{"parallel.world_size", "2"}, {"diloco.sync_steps", "2"}});
  RuntimeComponents parts = default_components(make_thread_world({.size = 2}), plan);
  parts.optimizer_runtime = std::move(runtime);
  RuntimeEngine engine(parts, plan);
  const auto record = std::make_shared<RunRecord>();
  engine.add_hook(record);
  engine.fit();
  return curve(*record);
}

// One that ignored DiLoCo would train something else, without a word.
TEST(OuterOptimizer, AnOwnOptimizerMustMakeThem) {
  EXPECT_EQ(curve_with(std::make_shared<OwnRuntime>(true)), curve_with(momentum_sgd()));
  try {
    curve_with(std::make_shared<OwnRuntime>(false));
    FAIL() << "DiLoCo was ignored";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("wrap it by with_outer_updates()"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ranklab
