// Training in few bits in every kind of layout: a pipeline gives one rank's bits, data parallelism those of gradient
// accumulation, other layouts its losses but for rounding; a dispatcher changes nothing; a resumed run goes on exactly.
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "tests/cli/run_program.h"
#include "tests/equivalence/precision_run.h"

namespace ranklab {
namespace {

TrainConfig in_recipe(int world, int tp, const std::string& recipe) {
  TrainConfig c = small_run(world, tp);
  c.precision.recipe = recipe;
  c.precision.block_size = 16;  // so that shards of a tiny model hold whole groups
  c.model.hidden_size = 64;
  c.model.ffn_hidden_size = 64;
  c.train_iters = 8;
  return c;
}

TrainConfig without_block(TrainConfig c) {
  c.precision.block_size = 0;
  return c;
}

// Recipes whose scales are of whole tensors have no block to set.
TrainConfig of_recipe(int world, int tp, const std::string& recipe) {
  const TrainConfig c = in_recipe(world, tp, recipe);
  return recipe.starts_with("fp8_") ? without_block(c) : c;
}

constexpr const char* kRecipes[] = {"fp8_delayed", "fp8_current", "fp8_rowwise", "deepseek_v3",
                                    "mxfp8",       "nvfp4",       "mxfp4"};

void expect_losses_near(const Curve& got, const Curve& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * want.losses[i]) << what << ", step " << i;
}

TEST(QuantizedTraining, RecipesDifferAndFollowBf16) {
  const Curve plain = train_curve(without_block(in_recipe(1, 1, "bf16")));
  for (const char* recipe : kRecipes) {
    const Curve curve = train_curve(of_recipe(1, 1, recipe));
    EXPECT_NE(curve.losses[0], plain.losses[0]) << recipe;
    expect_losses_near(curve, plain, 0.05, recipe);
    EXPECT_LT(curve.losses.back(), 0.85 * curve.losses.front()) << recipe;
  }
}

TEST(QuantizedTraining, APipelineIsOneRankBitForBit) {
  for (const char* recipe : {"fp8_delayed", "deepseek_v3", "nvfp4"}) {
    TrainConfig config = of_recipe(1, 1, recipe);
    config.num_microbatches = 4;
    const Curve whole = train_curve(config);
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      config.parallel = {.world = 4, .tp = 1, .pp = 4};
      config.pipeline_schedule = schedule;
      EXPECT_EQ(train_curve(config).losses, whole.losses) << recipe << ", " << schedule;
    }
  }
}

// Stochastic rounding draws by the token in the data, whoever has it. Both sums of microbatches are of two numbers.
TEST(QuantizedTraining, DataParallelismIsAccumulationBitForBit) {
  for (const char* recipe : kRecipes) {
    TrainConfig accumulated = of_recipe(1, 1, recipe);
    accumulated.num_microbatches = 2;
    accumulated.accumulation = Accumulation::kPairwise;
    TrainConfig parallel = of_recipe(2, 1, recipe);
    parallel.num_microbatches = 1;
    for (TrainConfig* one : {&accumulated, &parallel}) {
      one->precision.main_grads_dtype = "fp32";
      one->clip_grad = 0;
    }
    EXPECT_EQ(train_curve(parallel).losses, train_curve(accumulated).losses) << recipe;
  }
}

TEST(QuantizedTraining, LayoutsAgreeButForRounding) {
  for (const char* recipe : kRecipes) {
    const Curve whole = train_curve(of_recipe(1, 1, recipe));
    for (const auto& [world, tp] : {std::pair{2, 2}, std::pair{8, 4}})
      expect_losses_near(train_curve(of_recipe(world, tp, recipe)), whole, 0.015, recipe);
  }
}

TrainConfig with_experts(int world, int ep, const std::string& recipe) {
  TrainConfig c = of_recipe(world, 1, recipe);
  c.model.moe = {
      .num_experts = 4, .topk = 2, .ffn_hidden_size = 32, .shared_ffn_hidden_size = 32, .first_dense_layers = 1};
  c.parallel.ep = ep;
  return c;
}

TEST(QuantizedTraining, EveryDispatcherCarriesTheSameBits) {
  const Curve all_to_all = train_curve(with_experts(4, 4, "deepseek_v3"));
  for (const std::string dispatcher : {"allgather", "dedup", "rdep"}) {
    if (dispatcher == "rdep" && test_device() == TestDevice::kCuda) continue;  // writes into the host's memory
    TrainConfig config = with_experts(4, 4, "deepseek_v3");
    config.moe_dispatcher = dispatcher;
    expect_losses_near(train_curve(config), all_to_all, 1e-3, dispatcher);
    EXPECT_EQ(train_curve(config).losses[0], all_to_all.losses[0]) << dispatcher;
  }
  TrainConfig wide = with_experts(4, 4, "deepseek_v3");
  wide.precision.dispatch = false;
  EXPECT_NE(train_curve(wide).losses[0], all_to_all.losses[0]);
}

TEST(QuantizedTraining, ExpertsAgreeButForRounding) {
  for (const char* recipe : {"fp8_delayed", "deepseek_v3", "mxfp8", "nvfp4"})
    expect_losses_near(train_curve(with_experts(4, 4, recipe)), train_curve(with_experts(1, 1, recipe)), 0.03, recipe);
}

// With scales that are powers of two a weight that was rounded once is not changed by the rounding of its products: it
// may as well travel in 8 bits.
TEST(QuantizedTraining, WeightsGatheredIn8BitsChangeNothing) {
  const std::string file = temporary_path("ranklab_powers.toml");
  std::ofstream(file) << "name = \"powers\"\nbase = \"deepseek_v3\"\n[weight]\nformat = \"e4m3\"\n"
                         "granularity = \"block\"\nblock = 16\nscale = \"power_of_two\"\n";
  for (const auto& [world, tp] : {std::pair{4, 1}, std::pair{8, 2}}) {
    TrainConfig config = in_recipe(world, tp, file);
    const Curve same = train_curve(config);
    config.zero_stage = 3;
    EXPECT_EQ(train_curve(config).losses, same.losses) << "as they are";
    config.precision.param_gather = true;
    EXPECT_EQ(train_curve(config).losses, same.losses) << "in 8 bits";
  }
  // Scales that are no powers of two are made again of rounded numbers.
  TrainConfig config = in_recipe(4, 1, "deepseek_v3");
  config.zero_stage = 3;
  const Curve plain = train_curve(config);
  config.precision.param_gather = true;
  expect_losses_near(train_curve(config), plain, 0.01, "fp32 scales");
}

TEST(QuantizedTraining, ResumedItGoesOnExactly) {
  for (const char* recipe : {"fp8_delayed", "nvfp4"}) {
    TrainConfig config = of_recipe(2, 1, recipe);
    config.save_dir = temporary_path(std::string("quantized_") + recipe);
    config.train_iters = 4;
    config.lr_decay_iters = 8;
    config.lr_warmup_iters = 0;
    TrainConfig steady = config;
    steady.save_dir.clear();
    steady.train_iters = 8;
    const Curve unbroken = train_curve(steady);
    train_curve(config);
    config.load = config.save_dir;
    config.train_iters = 8;
    const Curve rest = train_curve(config);
    ASSERT_EQ(rest.losses.size(), 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rest.losses[i], unbroken.losses[i + 4]) << recipe;
  }
}

}  // namespace
}  // namespace ranklab
