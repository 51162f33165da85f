// Small training runs of which tests of numeric types compare losses, norms and weights.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/cpu_sim/test_world.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {

inline TrainConfig small_run(int world, int tp) {
  TrainConfig c = tiny_config(world, tp);
  c.parallel.pp = 1;
  c.model.num_layers = 4;
  c.model.init_std = 0.1;
  c.train_iters = 12;
  c.lr = 3e-3;
  c.global_batch_size = 16;
  c.trace = false;
  return c;
}

struct Curve {
  std::vector<double> losses, norms;
  std::vector<StepMetrics> steps;
  std::map<std::pair<int, std::string>, at::Tensor> weights;  // by global rank and name, after the last step
};

inline Curve train_curve(TrainConfig config) {
  config.device = test_device_setting();
  RuntimeEngine engine = tiny_engine(config, make_test_world(config.parallel.world));
  const auto hook = std::make_shared<RecordingHook>();
  engine.add_hook(hook);
  Curve curve;
  std::mutex mutex;
  engine.set_finale([&](StepContext& context) {
    const std::lock_guard lock(mutex);
    for (const OwnedState& state : context.optimizer.owned_state())
      curve.weights[{context.ctx.global_rank(), state.parameter->name}] = kept(state.weight);
  });
  engine.fit();
  curve.steps = hook->steps;
  for (const StepMetrics& step : hook->steps) {
    curve.losses.push_back(step.loss);
    curve.norms.push_back(step.grad_norm);
  }
  return curve;
}

inline void expect_near(const Curve& got, const Curve& want, double loss_tolerance, double norm_tolerance) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], want.losses[i], loss_tolerance * want.losses[i]) << "step " << i;
    EXPECT_NEAR(got.norms[i], want.norms[i], norm_tolerance * want.norms[i]) << "step " << i;
  }
  EXPECT_LT(got.losses.back(), 0.85 * got.losses.front());
}

// `config` on one rank with 4 microbatches, and cut into 2 and 4 stages.
inline void expect_pipelines_are_one_rank(TrainConfig config) {
  config.num_microbatches = 4;
  const Curve whole = train_curve(config);
  for (const int stages : {2, 4}) {
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      config.parallel = {.world = stages, .tp = 1, .pp = stages};
      config.pipeline_schedule = schedule;
      const Curve cut = train_curve(config);
      EXPECT_EQ(cut.losses, whole.losses) << schedule << ", " << stages;
      for (size_t i = 0; i < whole.norms.size(); ++i) EXPECT_NEAR(cut.norms[i], whole.norms[i], 1e-12 * whole.norms[i]);
    }
  }
}

inline void expect_layouts_near_one_rank(TrainConfig (*config_of)(int world, int tp), double loss_tolerance,
                                         double norm_tolerance) {
  const Curve whole = train_curve(config_of(1, 1));
  for (const auto& [world, tp] : {std::pair{8, 1}, std::pair{2, 2}, std::pair{8, 4}}) {
    TrainConfig other = config_of(world, tp);
    other.zero_stage = tp == 4 ? 3 : 0;
    expect_near(train_curve(other), whole, loss_tolerance, norm_tolerance);
  }
}

inline void expect_same_bits(const Curve& got, const Curve& want, const std::string& what) {
  EXPECT_EQ(got.losses, want.losses) << what;
  EXPECT_EQ(got.norms, want.norms) << what;
  ASSERT_EQ(got.weights.size(), want.weights.size()) << what;
  for (const auto& [key, weight] : want.weights)
    EXPECT_TRUE(at::equal(got.weights.at(key), weight)) << what << ", rank " << key.first << ", " << key.second;
}

}  // namespace ranklab
