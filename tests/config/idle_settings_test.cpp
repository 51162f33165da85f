#include "core/config/idle_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/settings/fields.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> idle_of(const std::vector<std::pair<std::string, std::string>>& given,
                                 const std::string& origin = "--set") {
  std::vector<ConfigSetting> settings = {{"parallel.world_size", "1", origin}, {"parallel.tp", "1", origin}};
  for (const auto& [key, text] : given) settings.push_back({key, text, origin});
  const MergedConfig merged = merge_config({}, settings);
  return idle_settings(resolve(merged.config), merged.origins);
}

TEST(IdleSettings, AreNamedWithWhatTheyAreOf) {
  EXPECT_THAT(idle_of({{"optim.sgd_momentum", "0.9"}}),
              ElementsAre("--sgd-momentum 0.9 has no effect: it applies to --optimizer sgd"));
  EXPECT_THAT(idle_of({{"precision.amax_history_len", "16"}, {"train.bf16", "true"}}),
              ElementsAre(HasSubstr("--fp8-amax-history-len 16 has no effect")));
  EXPECT_THAT(idle_of({{"moe.topk", "1"}, {"moe.normalize_topk", "false"}}),
              ElementsAre(HasSubstr("--moe-router-topk 1"), HasSubstr("--no-moe-router-norm-topk")));
  EXPECT_THAT(idle_of({{"model.rope_low_freq_factor", "2"}, {"model.rope_scaling_type", "linear"}}),
              ElementsAre("--rope-low-freq-factor 2 has no effect: it applies to --rope-scaling-type llama3"));
  EXPECT_THAT(idle_of({{"moe.normalize_top1", "true"}}), ElementsAre(HasSubstr("models with experts")));  // once
  EXPECT_THAT(idle_of({{"model.rope_scaling_factor", "2"}}), ElementsAre(HasSubstr("--rope-scaling-type")));
  EXPECT_THAT(idle_of({{"model.position", "learned_absolute"}, {"model.rope_scaling_type", "linear"}}),
              ElementsAre(HasSubstr("--position-embedding-type rope")));
  EXPECT_THAT(
      idle_of({{"model.window_attn_skip_freq", "2"}, {"model.local_rope_theta", "50"}}),
      ElementsAre(
          "--window-attn-skip-freq 2 has no effect: it applies to --window-size or --attention-chunk-size above 0",
          HasSubstr("--rotary-base-local 50")));
  EXPECT_THAT(idle_of({{"model.window_size", "8"}, {"model.window_attn_skip_freq", "[1]+[0]*2"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"model.attention_chunk", "8"}, {"model.window_attn_skip_freq", "2"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"model.qk_l2_norm", "true"}, {"model.no_rope_freq", "1"}}),
              ElementsAre(HasSubstr("it applies to a layer with rotary positions")));
  EXPECT_THAT(idle_of({{"model.query_temperature_scale", "0.1"}}),
              ElementsAre(HasSubstr("it applies to a layer without rotary positions")));
  EXPECT_THAT(idle_of({{"mtp.num_layers", "1"}, {"mtp.use_repeated_layer", "true"}}),
              ElementsAre("--mtp-use-repeated-layer has no effect: it applies to --mtp-num-layers above 1"));
  EXPECT_THAT(idle_of({{"mtp.num_layers", "2"}, {"mtp.use_repeated_layer", "true"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"model.query_temperature_floor", "64"}}),
              ElementsAre(HasSubstr("it applies to --query-temperature-scale above 0")));
  EXPECT_THAT(idle_of({{"model.query_temperature_scale", "0.1"}, {"model.no_rope_freq", "4"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"model.position", "none"}, {"model.no_rope_freq", "4"}}),
              ElementsAre("--no-rope-freq 4 has no effect: it applies to --position-embedding-type rope"));
  EXPECT_THAT(
      idle_of({{"optim.end_weight_decay", "0.3"}}),
      ElementsAre("--end-weight-decay 0.3 has no effect: it applies to --weight-decay-incr-style linear or cosine"));
  EXPECT_THAT(idle_of({{"optim.weight_decay_incr_style", "linear"},
                       {"optim.start_weight_decay", "0"},
                       {"optim.end_weight_decay", "0.3"}}),
              IsEmpty());
  EXPECT_THAT(idle_of({{"optim.qk_clip_alpha", "0.3"}}),
              ElementsAre("--qk-clip-alpha 0.3 has no effect: it applies to --qk-clip"));
  EXPECT_THAT(idle_of({{"optim.qk_clip", "true"}, {"model.attn_logit_softcapping", "50"}}),
              ElementsAre(HasSubstr("--qk-clip has no effect: it applies to models whose logits may be above")));
  EXPECT_THAT(
      idle_of({{"optim.qk_clip", "true"}, {"optim.qk_clip_threshold", "20"}, {"model.attn_logit_softcapping", "50"}}),
      IsEmpty());
  EXPECT_THAT(idle_of({{"model.qk_norm_width", "all-heads"}}), ElementsAre(HasSubstr("it applies to --qk-layernorm")));
  EXPECT_THAT(idle_of({{"model.rope_long_factors", "1,2"}, {"model.rope_scaling_type", "dynamic"}}),
              ElementsAre(HasSubstr("it applies to --rope-scaling-type longrope")));
  EXPECT_THAT(idle_of({{"model.preset", "qwen3_moe_tiny"}, {"moe.shared_gate", "true"}}),
              ElementsAre(HasSubstr("--moe-shared-expert-intermediate-size above 0")));
  EXPECT_THAT(idle_of({{"sim.gemm", "mkl"}, {"train.bf16", "true"}}), ElementsAre(HasSubstr("fp32 on the host")));
  EXPECT_THAT(idle_of({{"sim.gemm", "mkl"}, {"parallel.device", "cuda"}}), ElementsAre(HasSubstr("--device cpu")));
  EXPECT_THAT(idle_of({{"sample.tokens", "0"}, {"sample.temperature", "1"}}),
              ElementsAre(HasSubstr("--sample-tokens above 0")));
  EXPECT_THAT(
      idle_of({{"data.validation_fraction", "0"}, {"data.eval_interval", "5"}, {"data.eval_iters", "2"}}),
      ElementsAre("--eval-interval 5 has no effect: it applies to --validation-fraction above 0, or --valid-data-path",
                  HasSubstr("--eval-iters 2 has no effect")));
  EXPECT_THAT(idle_of({{"data.validation_fraction", "0"}, {"data.eval_interval", "0"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"data.valid_path", "held_out"}, {"data.eval_interval", "5"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"data.valid_path", "held_out"}, {"data.eval_interval", "0"}}),
              ElementsAre("--valid-data-path held_out has no effect: it applies to --eval-interval above 0"));
  EXPECT_THAT(idle_of({{"data.valid_path", "h"}, {"data.eval_interval", "0"}, {"sentinel.mode", "standard"}}),
              IsEmpty());
}

TEST(IdleSettings, OfExpertsAndFewBits) {
  EXPECT_THAT(idle_of({{"moe.num_experts", "4"}, {"moe.bias_update_rate", "0.01"}}),
              ElementsAre(HasSubstr("it applies to --moe-router-enable-expert-bias")));
  EXPECT_THAT(idle_of({{"precision.fp8", "true"}, {"precision.param_gather", "true"}, {"parallel.zero_stage", "0"}}),
              ElementsAre("--fp8-param-gather has no effect: it applies to --zero-stage 3"));
  EXPECT_THAT(idle_of({{"precision.stats_interval", "5"}, {"train.bf16", "true"}}),
              ElementsAre(HasSubstr("it applies to quantized products")));
  EXPECT_THAT(idle_of({{"precision.stats_interval", "5"}, {"precision.fp8", "true"}}), IsEmpty());
}

TEST(IdleSettings, OfGpus) {
  EXPECT_THAT(
      idle_of({{"parallel.attention_backend", "flash"}}),
      ElementsAre("--attention-backend flash has no effect: it applies to tensors on GPUs (--device cuda); on the "
                  "host attention is fused, or with unfused is not"));
  EXPECT_THAT(idle_of({{"parallel.attention_backend", "unfused"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"parallel.attention_backend", "flash"}, {"parallel.device", "cuda"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"parallel.deterministic", "true"}, {"parallel.check_calls", "true"}}),
              ElementsAre(HasSubstr("--check-calls has no effect"),
                          "--deterministic has no effect: it applies to --backend cuda: simulated ranks always do so"));
  EXPECT_THAT(idle_of({{"parallel.deterministic", "true"}, {"parallel.backend", "cuda"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"parallel.attention_backend", "flash"}, {"parallel.deterministic", "true"}}, "run.toml"),
              IsEmpty())
      << "a file is for GPUs, too: of a script of Megatron-LM, for one";
}

TEST(IdleSettings, OfTheLearningRate) {
  EXPECT_THAT(idle_of({{"optim.lr_decay_style", "constant"}, {"optim.min_lr", "1e-5"}}),
              ElementsAre(HasSubstr("it applies to a --lr-decay-style other than constant")));
  EXPECT_THAT(idle_of({{"optim.lr_wsd_decay_iters", "5"}, {"optim.lr_wsd_decay_style", "linear"}}),
              ElementsAre("--lr-wsd-decay-iters 5 has no effect: it applies to --lr-decay-style WSD",
                          HasSubstr("--lr-wsd-decay-style linear")));
  EXPECT_THAT(idle_of({{"optim.lr_warmup_init", "1e-4"}, {"optim.lr_warmup_iters", "0"}}),
              ElementsAre(HasSubstr("--lr-warmup-init 0.0001")));
  EXPECT_THAT(idle_of({{"optim.lr_warmup_init", "1e-4"}, {"optim.lr_warmup_fraction", "0.1"}}), IsEmpty());
  // The part is of these steps, whatever comes after the warm-up.
  EXPECT_THAT(
      idle_of(
          {{"optim.lr_decay_style", "constant"}, {"optim.lr_decay_iters", "50"}, {"optim.lr_warmup_fraction", "0.1"}}),
      IsEmpty());
}

// Commands that run a model train it only if they are asked to, or never.
TEST(IdleSettings, OfTrainingWhereNothingIsTrained) {
  const auto idle = [](ModelUse use, const std::string& steps, const std::string& origin,
                       const std::string& load = "") {
    const std::vector<ConfigSetting> settings = {{"parallel.world_size", "1", origin},
                                                 {"train.train_iters", steps, origin},
                                                 {"optim.lr", "5", origin},
                                                 {"memory.recompute_granularity", "full", origin},
                                                 {"sample.tokens", "0", origin},
                                                 {"checkpoint.save", "x", origin},
                                                 {"checkpoint.load", load, origin}};
    const MergedConfig merged = merge_config({}, settings);
    return idle_settings(resolve(merged.config), merged.origins, use);
  };
  const std::string lr = "--lr 5 has no effect: it applies to runs that train";
  const auto full = HasSubstr("--recompute-granularity full"), save = HasSubstr("--save x has no effect");
  EXPECT_THAT(idle(ModelUse::kTrainsIfAsked, "0", "flag --lr"), testing::UnorderedElementsAre(lr, full, save));
  EXPECT_THAT(idle(ModelUse::kOnlyRuns, "3", "--set"),
              testing::UnorderedElementsAre(lr, full, save, HasSubstr("--train-iters 3 has no effect")));
  EXPECT_THAT(idle(ModelUse::kOnlyRuns, "0", "--set", "x"), Not(testing::Contains(save))) << "--load auto names it";
  EXPECT_THAT(idle(ModelUse::kTrainsIfAsked, "3", "--set"), IsEmpty());
  EXPECT_THAT(idle(ModelUse::kTrains, "0", "--set"), IsEmpty());
  EXPECT_THAT(idle(ModelUse::kOnlyRuns, "3", "run.toml:1"), IsEmpty()) << "a file is for several commands";
}

TEST(IdleSettings, WhatCountsIsNotNamed) {
  EXPECT_THAT(idle_of({}), IsEmpty());
  EXPECT_THAT(idle_of({{"optim.sgd_momentum", "0.9"}, {"optim.optimizer", "sgd"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"model.preset", "deepseek_v3_tiny"}, {"moe.topk", "2"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"moe.num_experts", "0"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"sim.gemm", "mkl"}}), IsEmpty());
  EXPECT_THAT(idle_of({{"precision.fp8", "true"}, {"precision.amax_history_len", "16"}}), IsEmpty());
}

// A file may name every setting, as the one that an import writes does.
TEST(IdleSettings, AFilesLineThatSaysWhatHoldsAnywayIsNotNamed) {
  const TrainConfig usual;
  std::vector<std::pair<std::string, std::string>> all;
  for (const ConfigField& field : config_fields())
    if (field.key.starts_with("moe.") || field.key.starts_with("mla.") || field.key.starts_with("yarn."))
      all.emplace_back(field.key, field.get(usual));
  EXPECT_THAT(idle_of(all, "model.toml:7"), IsEmpty());
  for (const char* typed : {"--set", "flag --moe-router-topk", "environment RANKLAB_MOE_TOPK"})
    EXPECT_THAT(idle_of(all, typed), Not(IsEmpty())) << typed;
  EXPECT_THAT(idle_of({{"moe.topk", "3"}}, "model.toml:7"), ElementsAre(HasSubstr("--moe-router-topk 3")));
  // Compared with what the preset says, not with the program's own defaults.
  EXPECT_THAT(idle_of({{"model.preset", "gpt2_124m"}, {"model.rope_theta", "10000"}}, "model.toml:7"), IsEmpty());
  EXPECT_THAT(idle_of({{"model.preset", "gpt2_124m"}, {"model.rope_theta", "500000"}}, "model.toml:7"),
              ElementsAre(HasSubstr("--position-embedding-type rope")));
}

}  // namespace
}  // namespace ranklab
