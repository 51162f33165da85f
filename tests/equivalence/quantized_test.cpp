// Quantized training in every kind of layout: a pipeline gives one rank's bits, data parallelism those of gradient
// accumulation, other layouts its losses up to rounding; a dispatcher changes nothing; a resumed run continues exactly.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tests/cli/run_program.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/equivalence/precision_run.h"
#include "tests/support/relative_error.h"

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

// One rank's run of a recipe, with which several tests compare.
const TrainingRecord& whole_of(const std::string& recipe) {
  static auto& made = *new std::map<std::string, TrainingRecord>;  // never destroyed: it holds tensors
  const auto found = made.find(recipe);
  return found != made.end() ? found->second : made[recipe] = record_training(of_recipe(1, 1, recipe));
}

constexpr const char* kRecipes[] = {"fp8_delayed", "fp8_current", "fp8_rowwise", "deepseek_v3",
                                    "mxfp8",       "nvfp4",       "mxfp4"};

TEST(QuantizedTraining, RecipesDifferAndFollowBf16) {
  const TrainingRecord plain = record_training(without_block(in_recipe(1, 1, "bf16")));
  for (const char* recipe : kRecipes) {
    const TrainingRecord& curve = whole_of(recipe);
    EXPECT_NE(curve.losses()[0], plain.losses()[0]) << recipe;
    SCOPED_TRACE(recipe);
    expect_losses_near(curve, plain, 0.05);
    EXPECT_LT(curve.losses().back(), 0.85 * curve.losses().front()) << recipe;
  }
}

TEST(QuantizedTraining, APipelineIsOneRankBitForBit) {
  for (const char* recipe : {"fp8_delayed", "deepseek_v3", "nvfp4"}) {
    TrainConfig config = of_recipe(1, 1, recipe);
    config.num_microbatches = 4;
    const TrainingRecord whole = record_training(config);
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      config.parallel = {.world = 4, .tp = 1, .pp = 4};
      config.pipeline_schedule = schedule;
      EXPECT_EQ(record_training(config).losses(), whole.losses()) << recipe << ", " << schedule;
    }
  }
}

// Of DualPipe's two copies of a layer each sees half of the microbatches, and both scale by the amaxes of all. Two and
// two microbatches are summed as by a pairwise accumulation of four.
TEST(QuantizedTraining, BothCopiesOfDualPipeScaleByAllMicrobatches) {
  TrainConfig config = of_recipe(1, 1, "fp8_delayed");
  config.num_microbatches = 4;
  config.precision.main_grads_dtype = "fp32";
  config.clip_grad = 0;
  config.lr_decay_iters = 8;
  config.lr_warmup_iters = 0;
  TrainConfig copies = config;
  config.accumulation = Accumulation::kPairwise;
  const std::vector<double> whole = record_training(config).losses();
  copies.parallel = {.world = 2, .tp = 1, .pp = 2};
  copies.pipeline_schedule = "dualpipe";
  copies.save_dir = temporary_path("quantized_dualpipe");
  copies.train_iters = 4;
  EXPECT_EQ(record_training(copies).losses(), std::vector<double>(whole.begin(), whole.begin() + 4));
  copies.load = copies.save_dir;
  copies.train_iters = 8;
  EXPECT_EQ(record_training(copies).losses(), std::vector<double>(whole.begin() + 4, whole.end()));
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
    EXPECT_EQ(record_training(parallel).losses(), record_training(accumulated).losses()) << recipe;
  }
}

TEST(QuantizedTraining, LayoutsAgreeButForRounding) {
  for (const char* recipe : kRecipes) {
    const TrainingRecord& whole = whole_of(recipe);
    SCOPED_TRACE(recipe);
    for (const auto& [world, tp] : {std::pair{2, 2}, std::pair{8, 4}})
      expect_losses_near(record_training(of_recipe(world, tp, recipe)), whole, 0.015);
  }
}

// Largest distance of a gradient of the first step, which also holds the noise of stochastic rounding to one rank's.
double first_gradients_apart(const TrainingRecord& got, const TrainingRecord& want) {
  double most = 0;
  for (const auto& [of, grad] : want.grads)
    if (of.first == 0) most = std::max(most, relative_error(got.grads.at(of), grad));
  return most;
}

// With context parallelism scales are still those of whole tensors. Exchanged heads give one rank's bits, so that
// before any update only the order of sums differs; blocks of keys are merged before the output is rounded, which moves
// some numbers to a neighbouring code. Gradients of the parts are rounded as whole ones, too.
TEST(QuantizedTraining, PartsOfSequencesAreScaledAsWholeOnes) {
  for (const char* recipe : kRecipes) {
    const TrainingRecord& whole = whole_of(recipe);
    for (const SequenceBalance balance : {SequenceBalance::kZigzag, SequenceBalance::kContiguous}) {
      for (const ContextExchange exchange : {ContextExchange::kP2p, ContextExchange::kAllToAll}) {
        SCOPED_TRACE(std::string(recipe) + ", " + std::string(name(exchange)) + ", " + std::string(name(balance)));
        TrainConfig config = of_recipe(4, 1, recipe);
        config.parallel.cp = 4;
        config.context_split = {exchange, balance};
        const TrainingRecord parts = record_training(config);
        const double first = exchange == ContextExchange::kAllToAll ? 1e-6 : 5e-3;
        EXPECT_NEAR(parts.losses()[0] / whole.losses()[0], 1, first);
        expect_losses_near(parts, whole, 0.015);
        if (exchange == ContextExchange::kAllToAll && balance == SequenceBalance::kZigzag) {
          EXPECT_LT(first_gradients_apart(parts, whole), 0.03);
        }
      }
    }
  }
}

// Every rank projects what came from the others, in the same numbers as the rank that sent it; gradients of the
// projection are rounded as each rank has them, before their sum.
TEST(QuantizedTraining, LatentsOfOtherRanksAreRoundedAsTheirOwn) {
  for (const char* recipe : kRecipes) {
    TrainConfig config = of_recipe(1, 1, recipe);
    config.model.num_query_groups = 0;
    config.model.mla = {.kv_lora_rank = 16, .qk_head_dim = 16, .qk_pos_emb_head_dim = 16, .v_head_dim = 16};
    const TrainingRecord whole = record_training(config);
    config.parallel = {.world = 4, .cp = 4};
    for (const ContextExchange exchange : {ContextExchange::kP2p, ContextExchange::kAllGather}) {
      SCOPED_TRACE(std::string(recipe) + ", " + std::string(name(exchange)));
      config.context_split = {exchange, SequenceBalance::kZigzag};
      const TrainingRecord parts = record_training(config);
      EXPECT_NEAR(parts.losses()[0] / whole.losses()[0], 1, 5e-3);
      expect_losses_near(parts, whole, 0.015);
    }
  }
}

// Every operand is rounded stochastically, and nothing else: each element draws the number that it draws on one rank.
// Groups of a weight gradient's operands are of neighbouring tokens, so its bits depend on how the batch is divided.
TEST(QuantizedTraining, EveryLayoutDrawsTheSameNoise) {
  const std::string file = temporary_path("ranklab_noise.toml");
  std::ofstream(file) << "name = \"noise\"\nbase = \"mxfp4\"\ncompute = \"fp32\"\nhadamard = false\n";
  for (const char* operand : {"activation", "weight", "gradient"})
    std::ofstream(file, std::ios::app) << "[" << operand << "]\nformat = \"e2m1\"\ngranularity = \"tile\"\n"
                                       << "block = 16\nscale = \"e8m0\"\nrounding = \"stochastic\"\n";
  TrainConfig config = in_recipe(1, 1, file);
  config.train_iters = 1;
  const TrainingRecord whole = record_training(config);
  struct Layout {
    ParallelDims sizes;
    int microbatches;
  };
  for (const auto& [sizes, microbatches] :
       {Layout{{.world = 2, .tp = 2}, 1}, Layout{{.world = 4, .tp = 2, .cp = 2}, 1}, Layout{{.world = 4, .cp = 4}, 1},
        Layout{{.world = 4, .pp = 4}, 8}, Layout{{.world = 4}, 2}}) {
    SCOPED_TRACE(strprintf("tp %d, cp %d, pp %d of %d ranks", sizes.tp, sizes.cp, sizes.pp, sizes.world));
    config.parallel = sizes;
    config.num_microbatches = microbatches;
    config.context_split.exchange = ContextExchange::kAllToAll;
    const TrainingRecord layout = record_training(config);
    EXPECT_NEAR(layout.losses()[0] / whole.losses()[0], 1, 1e-5);
    EXPECT_LT(first_gradients_apart(layout, whole), sizes.world == sizes.tp * sizes.cp ? 1e-2 : 0.3);
  }
}

TEST(QuantizedTraining, NumbersOfABlockStayOnOneRank) {
  TrainConfig config = in_recipe(4, 1, "deepseek_v3");
  config.parallel.cp = 4;
  config.context_split.balance = SequenceBalance::kStripe;
  config.num_microbatches = 4;  // of four sequences: four neighbouring tokens at each position of a stripe
  EXPECT_THROW(resolve(config), Error);
  config.num_microbatches = 1;
  EXPECT_NO_THROW(resolve(config));
}

TrainConfig with_experts(int world, int ep, const std::string& recipe) {
  TrainConfig c = of_recipe(world, 1, recipe);
  c.model.moe = {
      .num_experts = 4, .topk = 2, .ffn_hidden_size = 32, .shared_ffn_hidden_size = 32, .first_dense_layers = 1};
  c.parallel.ep = ep;
  return c;
}

TEST(QuantizedTraining, EveryDispatcherCarriesTheSameBits) {
  const TrainingRecord all_to_all = record_training(with_experts(4, 4, "deepseek_v3"));
  for (const std::string dispatcher : {"allgather", "dedup", "rdep"}) {
    if (dispatcher == "rdep" && test_device() == TestDevice::kCuda) continue;  // writes into the host's memory
    TrainConfig config = with_experts(4, 4, "deepseek_v3");
    config.moe_dispatcher = dispatcher;
    SCOPED_TRACE(dispatcher);
    const TrainingRecord other = record_training(config);
    expect_losses_near(other, all_to_all, 1e-3);
    EXPECT_EQ(other.losses()[0], all_to_all.losses()[0]);
  }
  TrainConfig wide = with_experts(4, 4, "deepseek_v3");
  wide.precision.dispatch = false;
  EXPECT_NE(record_training(wide).losses()[0], all_to_all.losses()[0]);
}

TEST(QuantizedTraining, ExpertsAgreeButForRounding) {
  for (const char* recipe : {"fp8_delayed", "deepseek_v3", "mxfp8", "nvfp4"}) {
    SCOPED_TRACE(recipe);
    expect_losses_near(record_training(with_experts(4, 4, recipe)), record_training(with_experts(1, 1, recipe)), 0.03);
  }
}

// With scales that are powers of two a weight that was rounded once is not changed by the rounding of its products: it
// may as well travel in 8 bits.
TEST(QuantizedTraining, WeightsGatheredIn8BitsChangeNothing) {
  const std::string file = temporary_path("ranklab_powers.toml");
  std::ofstream(file) << "name = \"powers\"\nbase = \"deepseek_v3\"\n[weight]\nformat = \"e4m3\"\n"
                         "granularity = \"block\"\nblock = 16\nscale = \"power_of_two\"\n";
  for (const auto& [world, tp] : {std::pair{4, 1}, std::pair{8, 2}}) {
    TrainConfig config = in_recipe(world, tp, file);
    const TrainingRecord same = record_training(config);
    config.zero_stage = 3;
    EXPECT_EQ(record_training(config).losses(), same.losses()) << "as they are";
    config.precision.param_gather = true;
    EXPECT_EQ(record_training(config).losses(), same.losses()) << "in 8 bits";
  }
  // Scales that are not powers of two are recomputed from the rounded numbers.
  TrainConfig config = in_recipe(4, 1, "deepseek_v3");
  config.zero_stage = 3;
  const TrainingRecord plain = record_training(config);
  config.precision.param_gather = true;
  expect_losses_near(record_training(config), plain, 0.01);
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
    const TrainingRecord unbroken = record_training(steady);
    record_training(config);
    config.load = config.save_dir;
    config.train_iters = 8;
    const TrainingRecord rest = record_training(config);
    ASSERT_EQ(rest.losses().size(), 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rest.losses()[i], unbroken.losses()[i + 4]) << recipe;
  }
}

}  // namespace
}  // namespace ranklab
