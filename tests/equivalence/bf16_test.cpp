// --bf16 in every kind of layout: a pipeline gives one rank's bits, other layouts its losses but for rounding to 8
// bits, and training goes where fp32 goes.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

TrainConfig small(int world, int tp) {
  TrainConfig c = tiny_config(world, tp);
  c.parallel.pp = 1;
  c.bf16 = true;
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
};

Curve train(const TrainConfig& config) {
  RuntimeEngine engine = tiny_engine(config);
  const auto hook = std::make_shared<RecordingHook>();
  engine.add_hook(hook);
  engine.fit();
  Curve curve;
  for (const StepMetrics& step : hook->steps) {
    curve.losses.push_back(step.loss);
    curve.norms.push_back(step.grad_norm);
  }
  return curve;
}

void expect_near(const Curve& got, const Curve& want, double loss_tolerance, double norm_tolerance) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], want.losses[i], loss_tolerance * want.losses[i]) << "step " << i;
    EXPECT_NEAR(got.norms[i], want.norms[i], norm_tolerance * want.norms[i]) << "step " << i;
  }
  EXPECT_LT(got.losses.back(), 0.85 * got.losses.front());
}

TEST(Bf16Training, GoesWhereFp32Goes) {
  TrainConfig config = small(1, 1);
  const Curve narrow = train(config);
  config.bf16 = false;
  const Curve wide = train(config);
  EXPECT_NE(narrow.losses[0], wide.losses[0]);
  expect_near(narrow, wide, 5e-3, 0.03);
}

// Stages hand on what the next layer would have read, and gradients are added in the same order.
TEST(Bf16Training, APipelineIsOneRankBitForBit) {
  TrainConfig config = small(1, 1);
  config.num_microbatches = 4;
  const Curve whole = train(config);
  for (const int stages : {2, 4}) {
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      config.parallel = {.world = stages, .tp = 1, .pp = stages};
      config.pipeline_schedule = schedule;
      const Curve cut = train(config);
      EXPECT_EQ(cut.losses, whole.losses) << schedule << ", " << stages;
      for (size_t i = 0; i < whole.norms.size(); ++i) EXPECT_NEAR(cut.norms[i], whole.norms[i], 1e-12 * whole.norms[i]);
    }
  }
}

TEST(Bf16Training, LayoutsAgreeButForRounding) {
  TrainConfig config = small(1, 1);
  const Curve whole = train(config);
  for (const auto& [world, tp] : {std::pair{8, 1}, std::pair{2, 2}, std::pair{8, 4}}) {
    TrainConfig other = small(world, tp);
    other.zero_stage = tp == 4 ? 3 : 0;
    expect_near(train(other), whole, 5e-3, 0.03);
  }
}

TEST(Bf16Training, ExpertsAgreeButForRounding) {
  TrainConfig config = small(1, 1);
  config.model.moe = {
      .num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .shared_ffn_hidden_size = 16, .first_dense_layers = 1};
  const Curve whole = train(config);
  config.bf16 = false;
  expect_near(whole, train(config), 0.02, 0.1);  // a token near the border of two experts may change sides
  config.bf16 = true;
  config.parallel = {.world = 4, .tp = 2, .pp = 1, .ep = 2};
  expect_near(train(config), whole, 0.02, 0.1);
}

TEST(Bf16Training, IsNotAskedForBesideAnotherType) {
  TrainConfig config = small(1, 1);
  config.params_dtype = "fp64";
  try {
    resolve(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--params-dtype fp64"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ranklab
