// Every factorization of 2, 4, 6 and 8 ranks over dp x tp, with and without sequence parallelism and gradient
// accumulation, against one rank: logits, loss, every gradient, the clip norm, the weights after one and the last step,
// with AdamW and SGD. Gradients are always compared: AdamW hides a wrong factor.
//   U: fp64, relative 1e-12 (rounding is told from logic)        T: fp32, 1e-6 after one step, 1e-5 after ten
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "tests/all_cases.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

// Sizes that every split of the world divides, and a vocabulary that none does.
TrainConfig base_config(int world, const std::string& variant) {
  const int64_t unit = world % 3 == 0 ? 6 : 8;
  TrainConfig c = small_config();
  c.model.num_layers = 2;
  c.model.hidden_size = 4 * unit;
  c.model.ffn_hidden_size = 6 * unit;
  c.model.num_attention_heads = 2 * unit;
  c.model.seq_length = unit;
  c.global_batch_size = 2 * unit;
  c.train_iters = 10;
  c.seed = 42;
  c.lr_decay = LrDecay::kConstant;
  c.clip_grad = 0.05;  // below every norm seen, so that clipping is part of the comparison
  c.ddp_bucket_bytes = 4096;
  variant_named(variant).change(c.model);
  return c;
}

struct Layout {
  int dp, tp;
  bool sp;
  int microbatches;
};

std::vector<Layout> layouts_of(int world) {
  std::vector<Layout> layouts;
  for (int tp = 1; tp <= world; ++tp) {
    if (world % tp != 0) continue;
    // Accumulation in every other layout.
    layouts.push_back({world / tp, tp, false, tp % 2 == 0 ? 2 : 1});
    if (tp > 1) layouts.push_back({world / tp, tp, true, tp % 4 == 0 ? 1 : 2});
  }
  return layouts;
}

TrainingRecord train(const TrainConfig& config) {
  return record_training(config, {.data = uneven_batches(), .logits = true, .vocab_size = 13});
}

using Param = std::tuple<int, std::string, OptimizerKind, std::string>;

std::string param_name(const ::testing::TestParamInfo<Param>& info) {
  const auto& [world, variant, optimizer, dtype] = info.param;
  return "ranks" + std::to_string(world) + "_" + variant + (optimizer == OptimizerKind::kAdamW ? "_adamw_" : "_sgd_") +
         dtype;
}

class Layouts : public ::testing::TestWithParam<Param> {};

TEST_P(Layouts, EqualOneRank) {
  const auto& [world, variant, optimizer, dtype] = GetParam();
  TrainConfig config = base_config(world, variant);
  config.optimizer = optimizer;
  config.lr = optimizer == OptimizerKind::kAdamW ? 3e-4 : 3e-2;
  config.sgd_momentum = 0.9;
  config.weight_decay = optimizer == OptimizerKind::kAdamW ? 0.1 : 0.01;
  config.params_dtype = dtype;
  if (dtype == "fp64" && !all_cases()) config.train_iters = 3;  // each within 1e-12: a difference shows at once
  const TrainingRecord reference = train(config);
  // Latent attention rounds more often on its way (its sums over a compressed vector are norms' inputs): some gradients
  // are 1.4e-6 apart, of which sizes depends on the processor's products.
  const double first = variant == "latent" ? 2e-6 : 1e-6;
  const Tolerance tolerance =
      dtype == "fp64" ? kRounding : Tolerance{.first = first, .later = 1e-5, .loss = 1e-5, .norm = 1e-5};
  for (const Layout& layout : layouts_of(world)) {
    SCOPED_TRACE("dp " + std::to_string(layout.dp) + " tp " + std::to_string(layout.tp) + (layout.sp ? " sp" : "") +
                 " microbatches " + std::to_string(layout.microbatches));
    config.parallel = {.world = world, .tp = layout.tp};
    config.sequence_parallel = layout.sp;
    config.num_microbatches = layout.microbatches;
    expect_same_training(train(config), reference, tolerance);
  }
}

// An optimizer sees gradients and its rank's pieces, not what the model is made of: SGD trains one variant on all
// layouts, AdamW all variants on all layouts.
std::vector<OptimizerKind> other_optimizers() {
  return all_cases() ? std::vector{OptimizerKind::kSgd} : std::vector<OptimizerKind>{};
}

// Layouts of 2 and 4 ranks are parts of those of 8.
std::vector<int> worlds() { return all_cases() ? std::vector{2, 4, 6, 8} : std::vector{6, 8}; }

std::vector<std::string> names_but(const std::string& without) {
  std::vector<std::string> names;
  for (const ModelVariant& variant : dense_variants()) {
    if (variant.name != without) names.emplace_back(variant.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(U, Layouts,
                         ::testing::Combine(::testing::ValuesIn(worlds()), ::testing::ValuesIn(names_but("latent")),
                                            ::testing::Values(OptimizerKind::kAdamW), ::testing::Values("fp64")),
                         param_name);
INSTANTIATE_TEST_SUITE_P(UnderSgd, Layouts,
                         ::testing::Combine(::testing::ValuesIn(worlds()), ::testing::Values("llama_gqa"),
                                            ::testing::Values(OptimizerKind::kSgd), ::testing::Values("fp64")),
                         param_name);
INSTANTIATE_TEST_SUITE_P(AllUnderSgd, Layouts,
                         ::testing::Combine(::testing::ValuesIn(worlds()), ::testing::ValuesIn(names_but("llama_gqa")),
                                            ::testing::ValuesIn(other_optimizers()), ::testing::Values("fp64")),
                         param_name);
INSTANTIATE_TEST_SUITE_P(T, Layouts,
                         ::testing::Combine(::testing::ValuesIn(worlds()), ::testing::Values("llama_gqa"),
                                            ::testing::Values(OptimizerKind::kAdamW, OptimizerKind::kSgd),
                                            ::testing::Values("fp32")),
                         param_name);
INSTANTIATE_TEST_SUITE_P(LatentT, Layouts,
                         ::testing::Combine(::testing::ValuesIn(worlds()), ::testing::Values("latent"),
                                            ::testing::Values(OptimizerKind::kAdamW, OptimizerKind::kSgd),
                                            ::testing::Values("fp32")),
                         param_name);

}  // namespace
}  // namespace ranklab
