// Types of the optimizer's states and gradients in whole runs: the recipes of bf16 training follow fp32 training, and
// pipelines equal one rank bit for bit.

#include "core/config/state_types.h"
#include "core/sim/aten.h"
#include "tests/equivalence/precision_run.h"

namespace ranklab {
namespace {

TrainConfig bf16_run(const char* main_grads, const char* moments, const char* main_params) {
  TrainConfig c = small_run(1, 1);
  c.bf16 = true;
  c.num_microbatches = 4;
  c.precision.main_grads_dtype = main_grads;
  c.precision.exp_avg_dtype = c.precision.exp_avg_sq_dtype = moments;
  c.precision.main_params_dtype = main_params;
  return c;
}

TEST(StateTypes, APipelineIsOneRankBitForBit) {
  for (TrainConfig config : {bf16_run("fp32", "auto", "auto"), bf16_run("fp32", "bf16", "bf16")}) {
    config.clip_grad = 0;
    const TrainingRecord whole = record_training(config);
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      config.parallel = {.world = 2, .tp = 1, .pp = 2};
      config.pipeline_schedule = schedule;
      EXPECT_EQ(record_training(config).losses(), whole.losses()) << schedule;
    }
  }
}

TEST(StateTypes, TrainWhereFp32Goes) {
  TrainConfig config = small_run(1, 1);
  config.num_microbatches = 4;
  const TrainingRecord wide = record_training(config);
  for (const TrainConfig& narrow :
       {bf16_run("fp32", "auto", "auto"), bf16_run("fp32", "bf16", "fp32"), bf16_run("auto", "auto", "bf16")}) {
    const TrainingRecord curve = record_training(narrow);
    expect_near(curve, wide, 0.01, 0.05);
    const at::ScalarType kept = narrow.precision.main_params_dtype == "bf16" ? at::kBFloat16 : at::kFloat;
    for (const auto& [key, weight] : curve.weights) EXPECT_EQ(weight.scalar_type(), kept) << key.second;
  }
}

// The norm of gradients that add up in fp32 is nearer to that of fp32 training.
TEST(StateTypes, WideGradientsLoseLess) {
  TrainConfig config = small_run(1, 1);
  config.num_microbatches = 16;
  config.train_iters = 1;
  config.precision.fp16 = true;
  const double narrow = record_training(config).norms()[0];
  config.precision.main_grads_dtype = "fp32";
  const double wide = record_training(config).norms()[0];
  EXPECT_NE(narrow, wide);
  // The same gradients of each microbatch, added without rounding.
  config.num_microbatches = 1;
  config.precision = {};
  const double want = record_training(config).norms()[0];
  EXPECT_NEAR(wide, want, 1e-3 * want);
}

// A recipe's types, where no flag says otherwise.
TEST(StateTypes, AreTheRecipesUnlessAFlagSaysOtherwise) {
  TrainConfig config = small_run(1, 1);
  config.precision.recipe = "deepseek_v3";
  config.precision.block_size = 16;
  EXPECT_EQ(state_types(resolve(config)), (StateTypes{.params = DType::kBFloat16,
                                                      .main_params = DType::kFloat32,
                                                      .main_grads = DType::kFloat32,
                                                      .exp_avg = DType::kBFloat16,
                                                      .exp_avg_sq = DType::kBFloat16}));
  config.precision.exp_avg_dtype = "fp32";
  config.precision.main_grads_dtype = "bf16";
  const StateTypes asked = state_types(resolve(config));
  EXPECT_EQ(asked.exp_avg, DType::kFloat32);
  EXPECT_EQ(asked.exp_avg_sq, DType::kBFloat16);
  EXPECT_EQ(asked.main_grads, DType::kBFloat16);
  EXPECT_EQ(asked.optimizer_bytes(), 4 + 4 + 2);
  EXPECT_EQ(state_types(resolve(small_run(1, 1))), usual_state_types(DType::kFloat32, 2));
}

}  // namespace
}  // namespace ranklab
