#include "core/config/idle_settings.h"

#include <functional>

#include "core/config/loss_scale_choice.h"
#include "core/config/lr_choice.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/sources.h"
#include "core/config/sharding.h"
#include "core/precision/precision_policy.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

// A setting, or (if `key` ends with a dot) a table of settings, that only the runs described by `of` use.
struct IdleRow {
  std::string key;
  std::function<bool(const RunPlan&)> counts;
  std::string of;
  // report it only when typed: a file may contain it for other runs, on GPUs or converted from a Megatron-LM script
  bool only_typed = false;
};

bool follows_overflows(const RunPlan& plan) {
  const auto rule = loss_scale_rule(plan.config);
  return rule && plan.config.precision.loss_scale == 0;
}

bool has_delayed_scales(const RunPlan& plan) {
  return plan.precision && scales_are_delayed(plan.precision->recipe().linear);
}

// Whether the predicate holds for some layer of the model.
bool some_layer(const ModelConfig& model, bool (ModelConfig::*is_so)(int64_t) const) {
  for (int64_t layer = 0; layer < model.num_layers; ++layer)
    if ((model.*is_so)(layer)) return true;
  return false;
}

std::vector<IdleRow> make_idle_rows() {
  std::vector<IdleRow> rows;
  const auto add = [&](std::vector<std::string> keys, const std::function<bool(const RunPlan&)>& counts,
                       const std::string& of, bool only_typed = false) {
    for (std::string& key : keys) rows.push_back({std::move(key), counts, of, only_typed});
  };
  add(
      {"moe.", "parallel.moe_dispatcher"}, [](const RunPlan& p) { return p.config.model.moe.enabled(); },
      "models with experts (--num-experts, or a preset that has them)");
  add(
      {"parallel.cp_comm_type", "parallel.cp_balance"}, [](const RunPlan& p) { return p.mesh.size(Axis::kCp) > 1; },
      "--cp above 1");
  add(
      {"parallel.cp_sizes"},
      [](const RunPlan& p) {
        return p.mesh.size(Axis::kCp) > 1 && p.config.context_split.uses(ContextExchange::kAllToAllP2p);
      },
      "--cp-comm-type a2a+p2p with --cp above 1");
  add(
      {"data.eod_token"}, [](const RunPlan& p) { return p.config.documents.any(); },
      "--reset-attention-mask, --reset-position-ids or --eod-mask-loss");
  add(
      {"sim.software"}, [](const RunPlan& p) { return p.profile.kernels != nullptr; }, "--efficiency measured");
  add(
      {"optim.sgd_momentum"}, [](const RunPlan& p) { return p.config.optimizer == OptimizerKind::kSgd; },
      "--optimizer sgd");
  add(
      {"optim.adam_beta1", "optim.adam_beta2", "optim.adam_eps"},
      [](const RunPlan& p) {
        return p.config.optimizer == OptimizerKind::kAdamW || p.config.optimizer == OptimizerKind::kMuon;
      },
      "--optimizer adamw or muon");
  add(
      {"optim.qk_clip_threshold", "optim.qk_clip_alpha"}, [](const RunPlan& p) { return p.config.qk_clip; },
      "--qk-clip");
  add(
      {"optim.qk_clip"},
      [](const RunPlan& p) {
        const double cap = p.config.model.attn_logit_softcapping;
        return cap == 0 || cap > p.config.qk_clip_threshold;
      },
      "models whose logits may be above --qk-clip-threshold: --attn-logit-softcapping bounds them below");
  add(
      {"optim.start_weight_decay", "optim.end_weight_decay"},
      [](const RunPlan& p) { return p.config.weight_decay_style != WeightDecayStyle::kConstant; },
      "--weight-decay-incr-style linear or cosine");
  add(
      {"optim.weight_decay"},
      [](const RunPlan& p) { return p.config.weight_decay_style == WeightDecayStyle::kConstant; },
      "--weight-decay-incr-style constant; the others go from --start-weight-decay to --end-weight-decay",
      /*only_typed=*/true);
  add(
      {"optim.muon_momentum", "optim.muon_nesterov", "optim.muon_ns_steps", "optim.muon_ns_dtype",
       "optim.muon_distribution"},
      [](const RunPlan& p) { return p.config.optimizer == OptimizerKind::kMuon; }, "--optimizer muon");
  add(
      {"parallel.attention_backend"},
      [](const RunPlan& p) { return p.config.model.attention_dropout == 0 || p.of_other_software(); },
      "--attention-dropout 0: probabilities that are dropped are in memory (unfused)");
  add(
      {"parallel.attention_backend"},
      [](const RunPlan& p) {
        return p.config.on_gpu() || p.config.attention_backend == "unfused" || p.config.attention_backend == "auto";
      },
      "tensors on GPUs (--device cuda); on the host attention is fused, or with unfused is not", /*only_typed=*/true);
  add(
      {"parallel.deterministic", "parallel.check_calls", "parallel.canonical_reductions"},
      [](const RunPlan& p) { return !p.config.can(Capability::kMakesRanks); },
      "--backend cuda: simulated ranks always do so", /*only_typed=*/true);
  add(
      {"optim.lion_beta1", "optim.lion_beta2"},
      [](const RunPlan& p) { return p.config.optimizer == OptimizerKind::kLion; }, "--optimizer lion");
  add(
      {"optim.min_lr"}, [](const RunPlan& p) { return p.config.lr_decay != LrDecay::kConstant; },
      "a --lr-decay-style other than constant");
  add(
      {"optim.lr_decay_iters", "optim.lr_decay_samples"},
      [](const RunPlan& p) { return p.config.lr_decay != LrDecay::kConstant || p.config.lr_warmup_fraction > 0; },
      "a --lr-decay-style other than constant, or --lr-warmup-fraction");
  add(
      {"optim.lr_wsd_decay_iters", "optim.lr_wsd_decay_samples", "optim.lr_wsd_decay_style"},
      [](const RunPlan& p) { return p.config.lr_decay == LrDecay::kWsd; }, "--lr-decay-style WSD");
  add(
      {"optim.lr_warmup_init"}, [](const RunPlan& p) { return lr_schedule_of(p.config).warmup_steps > 0; },
      "--lr-warmup-iters or --lr-warmup-fraction above 0");
  add({"precision.amax_history_len", "precision.amax_compute_algo"}, has_delayed_scales,
      "delayed scaling (--fp8, or --precision-recipe fp8_delayed)");
  add({"precision.initial_loss_scale", "precision.min_loss_scale", "precision.max_loss_scale",
       "precision.loss_scale_window"},
      follows_overflows, "--fp16 without --loss-scale");
  add(
      {"precision.param_gather"}, [](const RunPlan& p) { return p.zero().parameters; }, "--zero-stage 3",
      /*only_typed=*/true);
  add(
      {"precision.stats_interval"}, [](const RunPlan& p) { return p.precision != nullptr; },
      "quantized products (--fp8, --fp4 or a --precision-recipe with formats)");
  add(
      {"mtp.loss_weight"}, [](const RunPlan& p) { return p.config.model.mtp_num_layers > 0; },
      "--mtp-num-layers above 0");
  add(
      {"mla."}, [](const RunPlan& p) { return p.config.model.mla.enabled(); }, "--kv-lora-rank above 0");
  add(
      {"linear_attention."}, [](const RunPlan& p) { return p.config.model.linear.enabled(); },
      "--linear-attention-type gated_delta_net");
  add(
      {"mamba."}, [](const RunPlan& p) { return p.config.model.mamba_layer_count() > 0; },
      "an M in --hybrid-layer-pattern");
  add(
      {"model.residual_form"},
      [](const RunPlan& p) { return !p.config.model.is_hybrid() || p.config.model.mtp_num_layers > 0; },
      "layers with attention and an MLP; each of a --hybrid-layer-pattern has one mixer");
  add(
      {"moe.layer_freq", "moe.first_dense_layers"}, [](const RunPlan& p) { return !p.config.model.is_hybrid(); },
      "models without --hybrid-layer-pattern, whose E are the layers with experts");
  add(
      {"yarn."}, [](const RunPlan& p) { return p.config.model.yarn.enabled(); }, "--rotary-scaling-factor above 1");
  add(
      {"model.rope_theta", "model.rotary_percent", "model.rotary_interleaved", "model.no_rope_freq",
       "model.rope_scaling_type"},
      [](const RunPlan& p) { return p.config.model.position == PositionKind::kRope; },
      "--position-embedding-type rope");
  add(
      {"model.qk_norm_width"}, [](const RunPlan& p) { return p.config.model.qk_norm; }, "--qk-layernorm");
  add(
      {"model.window_attn_skip_freq"},
      [](const RunPlan& p) { return p.config.model.window_size > 0 || p.config.model.attention_chunk > 0; },
      "--window-size or --attention-chunk-size above 0");
  add(
      {"model.qk_l2_norm"}, [](const RunPlan& p) { return some_layer(p.config.model, &ModelConfig::has_rope); },
      "a layer with rotary positions (--position-embedding-type rope, --no-rope-freq)");
  add(
      {"model.query_temperature_scale"},
      [](const RunPlan& p) {
        const ModelConfig& model = p.config.model;
        return model.query_temperature_scale == 0 || some_layer(model, &ModelConfig::has_query_temperature);
      },
      "a layer without rotary positions (--no-rope-freq)");
  add(
      {"model.query_temperature_floor"}, [](const RunPlan& p) { return p.config.model.query_temperature_scale > 0; },
      "--query-temperature-scale above 0");
  add(
      {"model.local_rope_theta"}, [](const RunPlan& p) { return p.config.model.has_local_rope(); },
      "--window-size above 0 with --position-embedding-type rope");
  add(
      {"model.rope_scaling_factor"}, [](const RunPlan& p) { return p.config.model.rope_scaling.enabled(); },
      "--rope-scaling-type");
  add(
      {"model.rope_scaling_original_length"},
      [](const RunPlan& p) {
        const RopeScalingKind kind = p.config.model.rope_scaling.kind;
        return kind == RopeScalingKind::kDynamic || kind == RopeScalingKind::kLlama3 ||
               kind == RopeScalingKind::kLongRope;
      },
      "--rope-scaling-type dynamic, llama3 or longrope");
  add(
      {"model.rope_short_factors", "model.rope_long_factors", "model.rope_attention_factor"},
      [](const RunPlan& p) { return p.config.model.rope_scaling.kind == RopeScalingKind::kLongRope; },
      "--rope-scaling-type longrope");
  add(
      {"model.rope_low_freq_factor", "model.rope_high_freq_factor"},
      [](const RunPlan& p) { return p.config.model.rope_scaling.kind == RopeScalingKind::kLlama3; },
      "--rope-scaling-type llama3");
  add(
      {"model.hf_rope_interleave"}, [](const RunPlan& p) { return p.config.model.mla.enabled(); },
      "--kv-lora-rank above 0");
  add(
      {"moe.normalize_top1"},
      [](const RunPlan& p) { return p.config.model.moe.topk == 1 && p.config.model.moe.normalize_topk; },
      "--moe-router-topk 1 with --moe-router-norm-topk");
  add(
      {"moe.bias_update_rate"}, [](const RunPlan& p) { return p.config.model.moe.expert_bias; },
      "--moe-router-enable-expert-bias");
  add(
      {"moe.shared_gate"}, [](const RunPlan& p) { return p.config.model.moe.shared_ffn_hidden_size > 0; },
      "--moe-shared-expert-intermediate-size above 0");
  add(
      {"sim.gemm"}, [](const RunPlan& p) { return !p.config.on_gpu() && p.config.element_dtype() == DType::kFloat32; },
      "fp32 on the host (--device cpu)");
  add(
      {"data.eval_interval", "data.eval_iters"},
      [](const RunPlan& p) {
        return p.config.validation_fraction > 0 || !p.config.valid_data_path.empty() || p.config.eval_interval == 0;
      },
      "--validation-fraction above 0, or --valid-data-path");
  add(
      {"data.valid_path"},
      [](const RunPlan& p) {
        return p.config.eval_interval > 0 || p.config.sentinels.mode >= SentinelMode::kStandard;  // for the probe
      },
      "--eval-interval above 0");
  add(
      {"data.eval_iters"}, [](const RunPlan& p) { return p.config.eval_interval > 0; }, "--eval-interval above 0");
  add(
      {"sentinel.interval", "sentinel.probe_interval", "sentinel.drift_interval"},
      [](const RunPlan& p) { return p.config.sentinels.mode >= SentinelMode::kStandard; },
      "--sentinel-mode standard or debug");
  add(
      {"sentinel.histogram_interval"},
      [](const RunPlan& p) {
        return p.config.sentinels.mode >= SentinelMode::kStandard && !p.config.tensorboard_dir.empty();
      },
      "--sentinel-mode standard or debug, and --tensorboard-dir");
  add(
      {"trace.step_start", "trace.step_end"}, [](const RunPlan& p) { return p.config.trace || p.config.profile; },
      "--trace or --profile");
  add(
      {"sample.prompt", "sample.temperature"}, [](const RunPlan& p) { return p.config.sample_tokens > 0; },
      "--sample-tokens above 0");
  add(
      {"memory.recompute_method"}, [](const RunPlan& p) { return p.config.recompute_granularity == "full"; },
      "--recompute-granularity full");
  add(
      {"memory.recompute_modules"}, [](const RunPlan& p) { return p.config.recompute_granularity == "selective"; },
      "--recompute-granularity selective");
  add({"parallel.grad_sync"}, shards_gradients,
      "--zero-stage " + zero_stage_numbers(2) + " with several data-parallel ranks");
  add(
      {"train.accumulation"},
      [](const RunPlan& p) { return !shards_gradients(p) || p.config.grad_sync == GradSync::kStep; },
      "--grad-sync step, where a rank adds up its microbatches");
  add(
      {"checkpoint.async"}, [](const RunPlan& p) { return !p.config.save_dir.empty(); }, "--save FOLDER");
  return rows;
}

bool idles_by(const IdleRow& row, const std::string& key) {
  // The settings that switch these features on are never without effect.
  if (key == "moe.num_experts" || key == "mla.kv_lora_rank" || key == "linear_attention.type" ||
      key == "yarn.scaling_factor")
    return false;
  return row.key.ends_with('.') ? key.starts_with(row.key) : key == row.key;
}

// Whether the setting was typed, rather than read from a file that may list all settings, as the model.toml of an
// import does.
bool is_typed(const std::string& origin) {
  return origin.starts_with("flag ") || origin == "--set" || origin.starts_with("environment ");
}

// The configuration of a run for which nothing is set: the defaults, with the preset's model.
TrainConfig unsaid(const TrainConfig& config) {
  TrainConfig out;
  out.model = model_preset(config.preset);
  return out;
}

}  // namespace

std::vector<std::string> idle_settings(const RunPlan& plan, const std::map<std::string, std::string>& origins) {
  static const std::vector<IdleRow> kRows = make_idle_rows();
  const MergedConfig sources{plan.config, origins};
  const TrainConfig otherwise = unsaid(plan.config);
  std::vector<std::string> idle;
  for (const ConfigField& field : config_fields()) {
    if (!sources.given(field.key)) continue;
    if (!is_typed(origins.at(field.key)) && field.get(plan.config) == field.get(otherwise)) continue;
    for (const IdleRow& row : kRows) {
      if (!idles_by(row, field.key) || row.counts(plan)) continue;
      if (row.only_typed && !is_typed(origins.at(field.key))) continue;
      idle.push_back(words_of(field, field.get(plan.config)) + " has no effect: it applies to " + row.of);
      break;  // one reason is enough
    }
  }
  return idle;
}

}  // namespace ranklab
