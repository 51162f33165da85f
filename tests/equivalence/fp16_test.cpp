// --fp16 in every kind of layout: a pipeline gives one rank's bits, other layouts its losses but for rounding to 11
// bits, and training under a loss scale goes where fp32 goes.

#include "core/sim/aten.h"
#include "tests/equivalence/precision_run.h"

namespace ranklab {
namespace {

TrainConfig fp16_run(int world, int tp) {
  TrainConfig c = small_run(world, tp);
  c.precision.fp16 = true;
  return c;
}

TEST(Fp16Training, GoesWhereFp32Goes) {
  TrainConfig config = fp16_run(1, 1);
  const TrainingRecord narrow = record_training(config);
  for (const StepMetrics& step : narrow.steps) EXPECT_EQ(step.loss_scale, 65536);
  config.precision.fp16 = false;
  const TrainingRecord wide = record_training(config);
  EXPECT_NE(narrow.losses()[0], wide.losses()[0]);
  expect_near(narrow, wide, 1e-3, 0.01);
  EXPECT_EQ(wide.steps[0].loss_scale, 0) << "none in fp32";
}

TEST(Fp16Training, APipelineIsOneRankBitForBit) { expect_pipelines_are_one_rank(fp16_run(1, 1)); }

TEST(Fp16Training, LayoutsAgreeButForRounding) { expect_layouts_near_one_rank(fp16_run, 1e-3, 0.01); }

TEST(Fp16Training, ZeroStagesAreDataParallelism) {
  TrainConfig config = fp16_run(4, 1);
  config.clip_grad = 0;
  const TrainingRecord plain = record_training(config);
  for (const int stage : {1, 2, 3}) {
    config.zero_stage = stage;
    EXPECT_EQ(record_training(config).losses(), plain.losses()) << stage;
  }
}

TEST(Fp16Training, ExpertsAgreeButForRounding) {
  TrainConfig config = fp16_run(1, 1);
  config.model.moe = {
      .num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .shared_ffn_hidden_size = 16, .first_dense_layers = 1};
  const TrainingRecord whole = record_training(config);
  config.precision.fp16 = false;
  expect_near(whole, record_training(config), 0.02, 0.1);  // a token near the border of two experts may change sides
  config.precision.fp16 = true;
  config.parallel = {.world = 4, .tp = 2, .pp = 1, .ep = 2};
  expect_near(record_training(config), whole, 0.02, 0.1);
}

// What fp16 gradients lose without a scale: those of a loss over many tokens become zero.
TEST(Fp16Training, AScaleKeepsSmallGradients) {
  TrainConfig config = fp16_run(1, 1);
  config.train_iters = 1;
  config.precision.fp16 = false;
  const double want = record_training(config).norms()[0];
  config.precision.fp16 = true;
  EXPECT_NEAR(record_training(config).norms()[0], want, 1e-3 * want);
  config.precision.loss_scale = 1.0 / 4096;
  EXPECT_GT(std::abs(record_training(config).norms()[0] - want), 0.05 * want);
}

}  // namespace
}  // namespace ranklab
