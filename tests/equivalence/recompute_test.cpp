// Activation recomputation against runs that keep everything: losses, every gradient and every weight bit for bit, over
// schedules, tensor and sequence parallelism, dropout, latent attention, token prediction and experts; the loads of
// experts booked once; less memory; the FLOPs of the model unchanged and the step longer.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/sim/memory_scope.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

struct Choice {
  const char* name;
  const char* granularity;
  const char* method = "block";
  int64_t num_layers = 0;
  RecomputedModules modules = {};
};
const Choice kChoices[] = {
    {"selective", "selective"},
    {"halves", "selective", "block", 0, {.core_attn = false, .mlp = true, .moe = true}},
    {"halves_and_attention", "selective", "block", 0, {.core_attn = true, .mlp = true, .moe = true}},
    {"full", "full"},
    {"full_block_1", "full", "block", 1},
    {"full_uniform_2", "full", "uniform", 2},
};

TrainConfig recomputing(TrainConfig config, const Choice& choice) {
  config.recompute_granularity = choice.granularity;
  config.recompute_method = choice.method;
  config.recompute_num_layers = choice.num_layers;
  config.recompute_modules = choice.modules;
  config.recompute_modules.moe &= config.model.moe.enabled();
  config.recompute_modules.mlp &= !config.model.is_moe_layer(0);
  return config;
}

struct RecomputeCase {
  const char* name;
  const char* schedule;
  ParallelDims dims;
  const char* variant = "";  // of the model (tests/support/model_variants.h)
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

void fp32(TrainConfig& c) { c.params_dtype = "fp32"; }
void in_16_bits(TrainConfig& c) { fp32(c), c.bf16 = true; }
void dropout(TrainConfig& c) { c.model.dropout = 0.2; }
// Its gradients are rounded by numbers that are drawn for each token.
void stochastic_rounding(TrainConfig& c) {
  fp32(c);
  c.model.ffn_hidden_size = 64;
  c.precision.recipe = "nvfp4";
  c.num_microbatches = 2;
}

const RecomputeCase kRecomputeCases[] = {
    {"one_rank", "1f1b", {.world = 1, .tp = 1}},
    {"one_rank_fp32_dropout", "1f1b", {.world = 1, .tp = 1}, "", [](TrainConfig& c) { fp32(c), dropout(c); }},
    {"dp2", "1f1b", {.world = 2, .tp = 1}, "", [](TrainConfig& c) { c.optimizer = OptimizerKind::kSgd; }},
    {"tp2_sp_dropout", "1f1b", {.world = 2, .tp = 2}, "", dropout},
    {"tp2_gpt2", "1f1b", {.world = 2, .tp = 2}, "gpt2_dropout", [](TrainConfig& c) { c.sequence_parallel = false; }},
    {"tp2_groups_fp32", "1f1b", {.world = 2, .tp = 2}, "llama_gqa", fp32},
    {"pp2_dp2", "1f1b", {.world = 4, .tp = 1, .pp = 2}, "", dropout},
    {"pp2_gpipe", "gpipe", {.world = 2, .tp = 1, .pp = 2}},
    {"pp2_interleaved",
     "interleaved-1f1b",
     {.world = 2, .tp = 1, .pp = 2},
     "",
     [](TrainConfig& c) { c.virtual_stages = 2; }},
    {"pp2_zb_h1_tp2", "zb-h1", {.world = 4, .tp = 2, .pp = 2}, "", dropout},
    {"pp2_zb_v_fp32", "zb-v", {.world = 2, .tp = 1, .pp = 2}, "", fp32},
    {"stochastic_rounding", "1f1b", {.world = 1, .tp = 1}, "", stochastic_rounding},
    {"stochastic_rounding_pp2_tp2", "1f1b", {.world = 4, .tp = 2, .pp = 2}, "", stochastic_rounding},
    {"pp2_dualpipe", "dualpipe", {.world = 2, .tp = 1, .pp = 2}},
    {"olmo2_tp2", "1f1b", {.world = 2, .tp = 2}, "olmo2"},
    {"olmo2_pp2_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "olmo2"},
    {"gemma2_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, "gemma2", dropout},
    {"gemma2_pp2_zb_h1_fp32", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "gemma2", fp32},
    {"phi2_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, "phi2", dropout},
    {"phi2_pp2_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "phi2"},
    {"latent_mtp_tp2", "1f1b", {.world = 2, .tp = 2}, "latent_mtp"},
    {"latent_mtp_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "latent_tied"},
    {"repeated_mtp_tp2", "1f1b", {.world = 2, .tp = 2}, "repeated_mtp"},
    {"repeated_mtp_dp2_bf16", "1f1b", {.world = 2, .tp = 1}, "repeated_mtp", in_16_bits},
    {"repeated_mtp_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "repeated_mtp"},
    {"qwen_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, "qwen", dropout},
    {"llama3_tp2", "1f1b", {.world = 2, .tp = 2}, "llama3"},
    {"qwen_zb_h1_fp32", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "qwen", fp32},
    {"delta_net_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, "delta_net", dropout},
    {"delta_net_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "delta_net"},
    {"mamba_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, "mamba", dropout},
    {"mamba_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "mamba"},
    {"output_gate_tp2", "1f1b", {.world = 2, .tp = 2}, "output_gate"},
    {"output_gate_zb_h1_fp32", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "output_gate", fp32},
    {"bf16_tp2", "1f1b", {.world = 2, .tp = 2}, "", in_16_bits},
    {"bf16_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, "", in_16_bits},
};

TrainConfig recompute_config(const RecomputeCase& a) {
  TrainConfig config = small_config();
  config.parallel = a.dims;
  config.pipeline_schedule = a.schedule;
  if (*a.variant != '\0') variant_named(a.variant).change(config.model);
  a.change(config);
  config.num_microbatches = 4;
  return config;
}

void PrintTo(const RecomputeCase& one, std::ostream* out) { *out << one.name; }

class RecomputedRuns : public testing::TestWithParam<RecomputeCase> {};

TEST_P(RecomputedRuns, KeepsEveryBitInLessMemory) {
  install_booking_allocator();
  const TrainConfig config = recompute_config(GetParam());
  const TrainingRecord plain = record_training(config);
  ASSERT_EQ(plain.steps.size(), 2u);
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(choice.name);
    const RunPlan plan = resolve(config);
    const int64_t layers = *std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
    if (choice.num_layers > layers) continue;
    const TrainingRecord recomputed = record_training(recomputing(config, choice));
    expect_same_training(recomputed, plain, kSameBits);
    // Where W comes later the last ranks' peak is what waits for it: the same, and a recomputed part of a layer.
    const bool splits = plain.schedule.name.starts_with("zb");
    for (const auto& [rank, bytes] : plain.peak_activation_bytes)
      EXPECT_LT(static_cast<double>(recomputed.peak_activation_bytes.at(rank)),
                (splits ? 1.15 : 1.0) * static_cast<double>(bytes))
          << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RecomputedRuns, testing::ValuesIn(kRecomputeCases),
                         [](const auto& one) { return std::string(one.param.name); });

struct ExpertCase {
  const char* name;
  const char* variant;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

const ExpertCase kExpertCases[] = {
    {"ep2_balanced", "deepseek_experts", {.world = 2, .tp = 1, .pp = 1, .ep = 2}},
    {"ep4_tp2_capacity",
     "capacity",
     {.world = 8, .tp = 2, .pp = 1, .ep = 4},
     [](TrainConfig& c) {
       c.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
       c.model.moe.aux_loss_coeff = 0.05;
     }},
    {"ep2_tp2_qwen", "qwen_experts", {.world = 4, .tp = 2, .pp = 1, .ep = 2}},
    {"ep2_etp2", "deepseek_experts", {.world = 4, .tp = 2, .pp = 1, .ep = 2, .etp = 2}},
    {"ep2_zb_h1_fp32",
     "deepseek_experts",
     {.world = 4, .tp = 1, .pp = 2, .ep = 2},
     [](TrainConfig& c) {
       fp32(c);
       c.pipeline_schedule = "zb-h1";
     }},
    {"ep2_mtp_dropout_adamw", "deepseek", {.world = 2, .tp = 1, .pp = 1, .ep = 2}, dropout},
    {"ep2_repeated_mtp", "deepseek_repeated_mtp", {.world = 2, .tp = 1, .pp = 1, .ep = 2}, dropout},
    {"ep2_repeated_mtp_zb_h1", "deepseek_repeated_mtp", {.world = 4, .tp = 1, .pp = 2, .ep = 2}, [](TrainConfig& c) {
       c.pipeline_schedule = "zb-h1";
     }}};

void PrintTo(const ExpertCase& one, std::ostream* out) { *out << one.name; }

class RecomputeExperts : public testing::TestWithParam<ExpertCase> {};

TEST_P(RecomputeExperts, KeepEveryBitAndAreBookedOnce) {
  TrainConfig config = small_config();
  config.model.num_layers = 3;
  variant_named(GetParam().variant).change(config.model);
  config.model.moe.z_loss_coeff = 0.01;
  config.global_batch_size = 16;
  config.parallel = GetParam().dims;
  GetParam().change(config);
  config.num_microbatches = 2;
  const TrainingRecord plain = record_training(config);
  ASSERT_FALSE(plain.load.empty());
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(choice.name);
    if (choice.num_layers > 1 && config.parallel.pp > 1) continue;
    const TrainingRecord recomputed = record_training(recomputing(config, choice));
    expect_same_training(recomputed, plain, kSameBits);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RecomputeExperts, testing::ValuesIn(kExpertCases),
                         [](const auto& one) { return std::string(one.param.name); });

// Shown with a model whose layers are nearly all of its work.
TEST(RecomputeCost, IsOneMoreForwardWhichIsNotTheModelsWork) {
  TrainConfig config = small_config();
  config.model.hidden_size = 256;
  config.model.ffn_hidden_size = 1024;
  config.model.seq_length = 64;
  config.model.init_std = 0.02;
  config.params_dtype = "fp32";
  config.num_microbatches = 1;
  const TrainingRecord plain = record_training(config);
  const TrainingRecord full = record_training(recomputing(config, {"full", "full"}));
  const TrainingRecord one = record_training(recomputing(config, {"one", "full", "block", 1}));
  const auto model_flops = [](const StepMetrics& m) { return m.mfu * m.virtual_step_ms; };  // in some unit
  EXPECT_NEAR(model_flops(full.steps[1]) / model_flops(plain.steps[1]), 1.0, 1e-12);
  const double longer = full.steps[1].virtual_step_ms - plain.steps[1].virtual_step_ms;
  EXPECT_GT(longer, 0.1 * plain.steps[1].virtual_step_ms);
  EXPECT_NEAR(one.steps[1].virtual_step_ms - plain.steps[1].virtual_step_ms, longer / 4, 0.02 * longer);
}

TEST(RecomputeChoice, RefusesWhatDoesNotGoTogether) {
  const auto refused = [](auto change, const std::string& words) {
    TrainConfig config = small_config();
    config.model.num_layers = 3;
    variant_named("in_turn").change(config.model);
    change(config);
    try {
      resolve(config);
      ADD_FAILURE() << "accepted; should say: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused([](TrainConfig& c) { c.recompute_num_layers = 1; }, "as a whole");
  refused([](TrainConfig& c) { c.recompute_granularity = "full", c.recompute_num_layers = -1; },
          "--recompute-num-layers is out of range");
  refused([](TrainConfig& c) { c.recompute_granularity = "full", c.recompute_num_layers = 4; }, "at most 3");
}

}  // namespace
}  // namespace ranklab
