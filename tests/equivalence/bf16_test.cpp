// --bf16 in every kind of layout: a pipeline gives one rank's bits, other layouts its losses but for rounding to 8
// bits, and training goes where fp32 goes.
#include "core/base/error.h"
#include "tests/equivalence/precision_run.h"

namespace ranklab {
namespace {

TrainConfig in_bf16(int world, int tp) {
  TrainConfig c = small_run(world, tp);
  c.bf16 = true;
  return c;
}

TEST(Bf16Training, GoesWhereFp32Goes) {
  TrainConfig config = in_bf16(1, 1);
  const TrainingRecord narrow = record_training(config);
  config.bf16 = false;
  const TrainingRecord wide = record_training(config);
  EXPECT_NE(narrow.losses()[0], wide.losses()[0]);
  expect_near(narrow, wide, 5e-3, 0.03);
}

// Stages pass on exactly what the next layer would have read, and gradients are added in the same order.
TEST(Bf16Training, APipelineIsOneRankBitForBit) { expect_pipelines_are_one_rank(in_bf16(1, 1)); }

TEST(Bf16Training, LayoutsAgreeButForRounding) { expect_layouts_near_one_rank(in_bf16, 5e-3, 0.03); }

TEST(Bf16Training, ExpertsAgreeButForRounding) {
  TrainConfig config = in_bf16(1, 1);
  config.model.moe = {
      .num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .shared_ffn_hidden_size = 16, .first_dense_layers = 1};
  const TrainingRecord whole = record_training(config);
  config.bf16 = false;
  expect_near(whole, record_training(config), 0.02, 0.1);  // a token near the border of two experts may change sides
  config.bf16 = true;
  config.parallel = {.world = 4, .tp = 2, .pp = 1, .ep = 2};
  expect_near(record_training(config), whole, 0.02, 0.1);
}

TEST(Bf16Training, IsNotAskedForBesideAnotherType) {
  TrainConfig config = in_bf16(1, 1);
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
