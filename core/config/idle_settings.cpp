#include "core/config/idle_settings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "core/config/loss_scale_choice.h"
#include "core/config/lr_choice.h"
#include "core/config/pipeline_layout.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/sources.h"
#include "core/config/sharding.h"
#include "core/precision/precision_policy.h"
#include "core/spec/moe_dispatcher_names.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using Counts = std::function<bool(const RunPlan&)>;

// A setting, or (if `key` ends with a dot) a table of settings, that only the runs described by `of` use.
struct IdleRow {
  std::string key;
  std::string of;
  Counts counts;
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
  const auto put = [&](std::vector<std::string> keys, const std::string& of, const Counts& counts, bool only_typed) {
    for (std::string& key : keys) rows.push_back({std::move(key), of, counts, only_typed});
  };
  const auto add = [&](std::vector<std::string> keys, const std::string& of, const Counts& counts) {
    put(std::move(keys), of, counts, /*only_typed=*/false);
  };
  const auto add_typed = [&](std::vector<std::string> keys, const std::string& of, const Counts& counts) {
    put(std::move(keys), of, counts, /*only_typed=*/true);
  };
  add({"moe.", "parallel.moe_dispatcher"}, "models with experts (--num-experts, or a preset that has them)",
      [](const RunPlan& p) { return p.config.model.moe.enabled(); });
  const std::string senders = "whose tokens a collective sends (--ep above 1, another dispatcher than rdep)";
  const auto sends_tokens = [](const RunPlan& p) {
    return p.mesh.size(Axis::kEp) > 1 && !dispatcher_text(p.config.moe_dispatcher)->writes_to_peers;
  };
  add({"parallel.moe_pad_expert_input_to_capacity"},
      "--moe-expert-capacity-factor above 0 with --moe-token-dispatcher-type alltoall",
      [](const RunPlan& p) { return p.config.pads_experts(); });
  add({"parallel.delay_wgrad_compute"}, "models with experts, " + senders,
      [=](const RunPlan& p) { return p.config.model.moe.enabled() && sends_tokens(p); });
  add({"parallel.moe_shared_expert_overlap"},
      "models with shared experts (--moe-shared-expert-intermediate-size), " + senders,
      [=](const RunPlan& p) { return p.config.model.moe.shared_ffn_hidden_size > 0 && sends_tokens(p); });
  add({"parallel.tp_comm_overlap"}, "--tp above 1 with --sequence-parallel",
      [](const RunPlan& p) { return p.sequence_parallel && p.mesh.size(Axis::kTp) > 1; });
  add({"parallel.cp_comm_type", "parallel.cp_balance"}, "--cp above 1",
      [](const RunPlan& p) { return p.mesh.size(Axis::kCp) > 1; });
  add({"parallel.cp_sizes"}, "--cp-comm-type a2a+p2p with --cp above 1", [](const RunPlan& p) {
    return p.mesh.size(Axis::kCp) > 1 && p.config.context_split.uses(ContextExchange::kAllToAllP2p);
  });
  add({"parallel.microbatch_group_size_per_vp_stage"}, "--pipeline-schedule interleaved-1f1b with --vpp above 1",
      [](const RunPlan& p) { return has_microbatch_groups(p.config); });
  add({"data.eod_token"}, "--reset-attention-mask, --reset-position-ids or --eod-mask-loss",
      [](const RunPlan& p) { return p.config.documents.any(); });
  add({"sim.software"}, "--efficiency measured", [](const RunPlan& p) { return p.profile.kernels != nullptr; });
  add({"optim.sgd_momentum"}, "--optimizer sgd",
      [](const RunPlan& p) { return p.config.optimizer == OptimizerKind::kSgd; });
  add({"optim.adam_beta1", "optim.adam_beta2", "optim.adam_eps"}, "--optimizer adamw or muon", [](const RunPlan& p) {
    return p.config.optimizer == OptimizerKind::kAdamW || p.config.optimizer == OptimizerKind::kMuon;
  });
  add({"optim.qk_clip_threshold", "optim.qk_clip_alpha"}, "--qk-clip",
      [](const RunPlan& p) { return p.config.qk_clip; });
  add({"optim.qk_clip"},
      "models whose logits may be above --qk-clip-threshold: --attn-logit-softcapping bounds them below",
      [](const RunPlan& p) {
        const double cap = p.config.model.attn_logit_softcapping;
        return cap == 0 || cap > p.config.qk_clip_threshold;
      });
  add({"diloco."}, "--diloco-sync-steps", [](const RunPlan& p) { return p.config.diloco.enabled(); });
  add({"optim.start_weight_decay", "optim.end_weight_decay"}, "--weight-decay-incr-style linear or cosine",
      [](const RunPlan& p) { return p.config.weight_decay_style != WeightDecayStyle::kConstant; });
  add_typed({"optim.weight_decay"},
            "--weight-decay-incr-style constant; the others go from --start-weight-decay to --end-weight-decay",
            [](const RunPlan& p) { return p.config.weight_decay_style == WeightDecayStyle::kConstant; });
  add({"optim.muon_momentum", "optim.muon_nesterov", "optim.muon_ns_steps", "optim.muon_ns_dtype",
       "optim.muon_distribution"},
      "--optimizer muon", [](const RunPlan& p) { return p.config.optimizer == OptimizerKind::kMuon; });
  add({"parallel.attention_backend"}, "--attention-dropout 0: probabilities that are dropped are in memory (unfused)",
      [](const RunPlan& p) { return p.config.model.attention_dropout == 0 || p.of_other_software(); });
  add_typed(
      {"parallel.attention_backend"},
      "tensors on GPUs (--device cuda); on the host attention is fused, or with unfused is not", [](const RunPlan& p) {
        return p.config.on_gpu() || p.config.attention_backend == "unfused" || p.config.attention_backend == "auto";
      });
  add_typed({"parallel.deterministic", "parallel.check_calls", "parallel.canonical_reductions"},
            "--backend cuda: simulated ranks always do so",
            [](const RunPlan& p) { return !p.config.can(Capability::kMakesRanks); });
  add({"optim.lion_beta1", "optim.lion_beta2"}, "--optimizer lion",
      [](const RunPlan& p) { return p.config.optimizer == OptimizerKind::kLion; });
  add({"optim.min_lr"}, "a --lr-decay-style other than constant",
      [](const RunPlan& p) { return p.config.lr_decay != LrDecay::kConstant; });
  add({"optim.lr_decay_iters", "optim.lr_decay_samples"},
      "a --lr-decay-style other than constant, or --lr-warmup-fraction",
      [](const RunPlan& p) { return p.config.lr_decay != LrDecay::kConstant || p.config.lr_warmup_fraction > 0; });
  add({"optim.lr_wsd_decay_iters", "optim.lr_wsd_decay_samples", "optim.lr_wsd_decay_style"}, "--lr-decay-style WSD",
      [](const RunPlan& p) { return p.config.lr_decay == LrDecay::kWsd; });
  add({"optim.lr_warmup_init"}, "--lr-warmup-iters or --lr-warmup-fraction above 0",
      [](const RunPlan& p) { return lr_schedule_of(p.config).warmup_steps > 0; });
  add({"precision.amax_history_len", "precision.amax_compute_algo"},
      "delayed scaling (--fp8, or --precision-recipe fp8_delayed)", has_delayed_scales);
  add({"precision.initial_loss_scale", "precision.min_loss_scale", "precision.max_loss_scale",
       "precision.loss_scale_window"},
      "--fp16 without --loss-scale", follows_overflows);
  add_typed({"precision.param_gather"}, "--zero-stage 3", [](const RunPlan& p) { return p.zero().parameters; });
  add({"precision.stats_interval"}, "quantized products (--fp8, --fp4 or a --precision-recipe with formats)",
      [](const RunPlan& p) { return p.precision != nullptr; });
  add({"mtp.loss_weight"}, "--mtp-num-layers above 0",
      [](const RunPlan& p) { return p.config.model.mtp_num_layers > 0; });
  add({"mtp.use_repeated_layer"}, "--mtp-num-layers above 1",
      [](const RunPlan& p) { return p.config.model.mtp_num_layers > 1; });
  add({"mla.", "model.hf_rope_interleave"}, "--kv-lora-rank above 0",
      [](const RunPlan& p) { return p.config.model.mla.enabled(); });
  add({"linear_attention."}, "--linear-attention-type gated_delta_net",
      [](const RunPlan& p) { return p.config.model.linear.enabled(); });
  add({"mamba."}, "an M in --hybrid-layer-pattern",
      [](const RunPlan& p) { return p.config.model.mamba_layer_count() > 0; });
  add({"model.residual_form"}, "layers with attention and an MLP; each of a --hybrid-layer-pattern has one mixer",
      [](const RunPlan& p) { return !p.config.model.is_hybrid() || p.config.model.mtp_num_layers > 0; });
  add({"moe.layer_freq", "moe.first_dense_layers"},
      "models without --hybrid-layer-pattern, whose E are the layers with experts",
      [](const RunPlan& p) { return !p.config.model.is_hybrid(); });
  add({"yarn."}, "--rotary-scaling-factor above 1", [](const RunPlan& p) { return p.config.model.yarn.enabled(); });
  add({"model.rope_theta", "model.rotary_percent", "model.rotary_interleaved", "model.no_rope_freq",
       "model.rope_scaling_type"},
      "--position-embedding-type rope",
      [](const RunPlan& p) { return p.config.model.position == PositionKind::kRope; });
  add({"model.norm_bias"}, "--normalization LayerNorm",
      [](const RunPlan& p) { return p.config.model.norm == NormKind::kLayerNorm; });
  add({"model.qk_norm_width"}, "--qk-layernorm", [](const RunPlan& p) { return p.config.model.qk_norm; });
  add({"model.window_attn_skip_freq"}, "--window-size or --attention-chunk-size above 0",
      [](const RunPlan& p) { return p.config.model.window_size > 0 || p.config.model.attention_chunk > 0; });
  add({"model.qk_l2_norm"}, "a layer with rotary positions (--position-embedding-type rope, --no-rope-freq)",
      [](const RunPlan& p) { return some_layer(p.config.model, &ModelConfig::has_rope); });
  add({"model.query_temperature_scale"}, "a layer without rotary positions (--no-rope-freq)", [](const RunPlan& p) {
    const ModelConfig& model = p.config.model;
    return model.query_temperature_scale == 0 || some_layer(model, &ModelConfig::has_query_temperature);
  });
  add({"model.query_temperature_floor"}, "--query-temperature-scale above 0",
      [](const RunPlan& p) { return p.config.model.query_temperature_scale > 0; });
  add({"model.local_rope_theta"}, "--window-size above 0 with --position-embedding-type rope",
      [](const RunPlan& p) { return p.config.model.has_local_rope(); });
  add({"model.rope_scaling_factor"}, "--rope-scaling-type",
      [](const RunPlan& p) { return p.config.model.rope_scaling.enabled(); });
  add({"model.rope_scaling_original_length"}, "--rope-scaling-type dynamic, llama3 or longrope", [](const RunPlan& p) {
    const RopeScalingKind kind = p.config.model.rope_scaling.kind;
    return kind == RopeScalingKind::kDynamic || kind == RopeScalingKind::kLlama3 || kind == RopeScalingKind::kLongRope;
  });
  add({"model.rope_short_factors", "model.rope_long_factors", "model.rope_attention_factor"},
      "--rope-scaling-type longrope",
      [](const RunPlan& p) { return p.config.model.rope_scaling.kind == RopeScalingKind::kLongRope; });
  add({"model.rope_low_freq_factor", "model.rope_high_freq_factor"}, "--rope-scaling-type llama3",
      [](const RunPlan& p) { return p.config.model.rope_scaling.kind == RopeScalingKind::kLlama3; });
  add({"moe.normalize_top1"}, "--moe-router-topk 1 with --moe-router-norm-topk",
      [](const RunPlan& p) { return p.config.model.moe.topk == 1 && p.config.model.moe.normalize_topk; });
  add({"moe.bias_update_rate"}, "--moe-router-enable-expert-bias",
      [](const RunPlan& p) { return p.config.model.moe.expert_bias; });
  add({"moe.group_best"}, "--moe-router-group-topk below --moe-router-num-groups",
      [](const RunPlan& p) { return p.config.model.moe.limits_groups(); });
  add({"moe.shared_gate"}, "--moe-shared-expert-intermediate-size above 0",
      [](const RunPlan& p) { return p.config.model.moe.shared_ffn_hidden_size > 0; });
  add({"sim.gemm"}, "fp32 on the host (--device cpu)",
      [](const RunPlan& p) { return !p.config.on_gpu() && p.config.element_dtype() == DType::kFloat32; });
  add({"data.eval_interval", "data.eval_iters"}, "--validation-fraction above 0, or --valid-data-path",
      [](const RunPlan& p) {
        return p.config.validation_fraction > 0 || !p.config.valid_data_path.empty() || p.config.eval_interval == 0;
      });
  add({"data.valid_path"}, "--eval-interval above 0", [](const RunPlan& p) {
    return p.config.eval_interval > 0 || p.config.sentinels.mode >= SentinelMode::kStandard;  // for the probe
  });
  add({"data.eval_iters"}, "--eval-interval above 0", [](const RunPlan& p) { return p.config.eval_interval > 0; });
  add({"sentinel.interval", "sentinel.probe_interval", "sentinel.drift_interval"}, "--sentinel-mode standard or debug",
      [](const RunPlan& p) { return p.config.sentinels.mode >= SentinelMode::kStandard; });
  add({"sentinel.histogram_interval"}, "--sentinel-mode standard or debug, and --tensorboard-dir",
      [](const RunPlan& p) {
        return p.config.sentinels.mode >= SentinelMode::kStandard && !p.config.tensorboard_dir.empty();
      });
  add({"trace.step_start", "trace.step_end"}, "--trace or --profile",
      [](const RunPlan& p) { return p.config.trace || p.config.profile; });
  add({"sample.prompt", "sample.temperature"}, "--sample-tokens above 0",
      [](const RunPlan& p) { return p.config.sample_tokens > 0; });
  add({"memory.recompute_method"}, "--recompute-granularity full",
      [](const RunPlan& p) { return p.config.recompute_granularity == "full"; });
  add({"memory.recompute_modules"}, "--recompute-granularity selective",
      [](const RunPlan& p) { return p.config.recompute_granularity == "selective"; });
  add({"parallel.grad_sync"}, "--zero-stage " + zero_stage_numbers(2) + " with several data-parallel ranks",
      shards_gradients);
  add({"parallel.overlap_param_gather"},
      "--zero-stage 1 or 2 with several data-parallel ranks and no --cuda-graph (stage 3 always does so)",
      overlaps_param_gather);
  add({"train.accumulation"}, "--grad-sync step, where a rank adds up its microbatches",
      [](const RunPlan& p) { return !shards_gradients(p) || p.config.grad_sync == GradSync::kStep; });
  add({"checkpoint.async"}, "--save FOLDER", [](const RunPlan& p) { return !p.config.save_dir.empty(); });
  return rows;
}

bool idles_by(const IdleRow& row, const std::string& key) {
  // The settings that switch these features on are never without effect.
  if (key == "moe.num_experts" || key == "mla.kv_lora_rank" || key == "linear_attention.type" ||
      key == "yarn.scaling_factor" || key == "diloco.sync_steps")
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

// Settings, or (with a dot at the end) tables of them, that only training reads.
constexpr std::array<std::string_view, 18> kOfTraining = {"optim.",
                                                          "memory.",
                                                          "sentinel.",
                                                          "trace.",
                                                          "log.",
                                                          "sample.",
                                                          "checkpoint.save_interval",
                                                          "checkpoint.keep_last",
                                                          "checkpoint.async",
                                                          "checkpoint.finetune",
                                                          "data.path",
                                                          "data.mock",
                                                          "data.valid_path",
                                                          "data.validation_fraction",
                                                          "data.eval_interval",
                                                          "data.eval_iters",
                                                          "train.accumulation",
                                                          "train.rampup_batch_size"};

// Whether only training would read it, and nothing is trained. What is typed to switch something off is not counted.
bool idles_without_training(const RunPlan& plan, ModelUse use, const std::string& key, const std::string& value) {
  const bool trains = use == ModelUse::kTrains || (use == ModelUse::kTrainsIfAsked && plan.config.train_iters > 0);
  if (trains || value == "0" || value == "false") return false;
  if (key == "checkpoint.save") return plan.config.load != value;  // equal after --load auto
  if (key == "train.train_iters" || key == "train.train_samples") return use == ModelUse::kOnlyRuns;
  return std::ranges::any_of(kOfTraining,
                             [&](std::string_view of) { return of.ends_with('.') ? key.starts_with(of) : key == of; });
}

// What a run without effect of the setting lacks; "" if the setting has an effect.
std::string idle_because(const RunPlan& plan, ModelUse use, const std::string& key, const std::string& value,
                         bool typed) {
  static const std::vector<IdleRow> kRows = make_idle_rows();
  if (typed && idles_without_training(plan, use, key, value)) return "runs that train";
  for (const IdleRow& row : kRows)
    if (idles_by(row, key) && !row.counts(plan) && (typed || !row.only_typed)) return row.of;  // one reason is enough
  return "";
}

}  // namespace

std::vector<std::string> idle_settings(const RunPlan& plan, const std::map<std::string, std::string>& origins,
                                       ModelUse use) {
  const MergedConfig sources{plan.config, origins};
  const TrainConfig otherwise = unsaid(plan.config);
  std::vector<std::string> idle;
  for (const ConfigField& field : config_fields()) {
    if (!sources.given(field.key)) continue;
    const std::string value = field.get(plan.config);
    const bool typed = is_typed(origins.at(field.key));
    if (!typed && value == field.get(otherwise)) continue;
    const std::string of = idle_because(plan, use, field.key, value, typed);
    if (!of.empty()) idle.push_back(words_of(field, value) + " has no effect: it applies to " + of);
  }
  return idle;
}

}  // namespace ranklab
