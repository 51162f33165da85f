#include "core/runtime/checkpoint/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

// Model settings that only training or an export reads: they may change when a run resumes.
constexpr std::array<std::string_view, 17> kFree = {"model.preset",
                                                    "model.dropout",
                                                    "model.attention_dropout",
                                                    "model.init_std",
                                                    "model.hf_architecture",
                                                    "model.hf_rope_interleave",
                                                    "model.hf_bos_token",
                                                    "model.hf_eos_tokens",
                                                    "model.hf_pad_token",
                                                    "model.hf_generation_config",
                                                    "model.hf_tokenizer_config",
                                                    "moe.balancing",
                                                    "moe.aux_loss_coeff",
                                                    "moe.z_loss_coeff",
                                                    "moe.bias_update_rate",
                                                    "moe.force_balance",
                                                    "mtp.loss_weight"};

bool shapes_model(std::string_view key) {
  for (const std::string_view free : kFree) {
    if (key == free) return false;
  }
  return is_model_setting(key);
}

// Settings that may change when a run resumes without anyone being told: they decide where and how it is computed, what
// is written, or what it started from, or are checked or told elsewhere. An entry that ends with a dot or an underscore
// covers all settings that begin with it.
constexpr std::array<std::string_view, 22> kSilent = {
    "parallel.",
    "memory.",
    "checkpoint.",
    "sim.",
    "log.",
    "trace.",
    "sample.",
    "sentinel.",
    "dump.",
    "museum.",
    "model.preset",
    "model.init_std",
    "model.hf_",
    "train.micro_batch_size",
    "train.num_microbatches",
    "train.global_batch_tokens",  // --global-batch-size follows from it
    "data.path",
    "data.mock",
    "data.validation_fraction",
    "data.eval_interval",
    "data.eval_iters",
    "precision.stats_interval",
};

// Whether, among the settings that may change when a run resumes, this one affects the later steps or their validation.
// A new setting does, until it is known not to.
bool shapes_the_curve(std::string_view key, const TrainConfig& config) {
  if (key == "train.train_iters") return config.train_samples == 0;  // otherwise it follows from the samples
  const auto covers = [&](std::string_view silent) {
    return key == silent || ((silent.ends_with('.') || silent.ends_with('_')) && key.starts_with(silent));
  };
  return std::ranges::none_of(kSilent, covers);
}

std::string flag_of(const std::string& key) {
  for (const ConfigField& field : config_fields()) {
    if (field.key == key) return field.flags.empty() ? key : field.flags[0];
  }
  return key;
}

// Settings that affect what the model computes in training, not how it is exported.
bool is_of_model(std::string_view key) {
  return is_model_setting(key) && key != "model.preset" && !key.starts_with("model.hf_");
}

std::string shell_words_of(const ConfigField& field, const std::string& value) {
  if (field.flags.empty() || value.empty()) return "--set " + shell_word(field.key + "=" + value);
  return words_of(field, shell_word(value));
}

// The command-line flags that recreate the model of a checkpoint, for users who left them out:
// "--preset gpt_tiny --num-layers 2", the preset from which it was trained, and the differences from that preset. For
// an import, whose settings are in a file next to it, "--config FOLDER/model.toml". `folder`: the checkpoint's folder.
std::string model_flags(const CheckpointManifest& manifest, const std::string& folder) {
  const std::filesystem::path settings = std::filesystem::path(folder).parent_path() / "model.toml";
  if (manifest.config.empty() && is_there(settings.string())) return "--config " + shell_path(settings.string());
  TrainConfig base;
  std::vector<std::string> words;
  const auto preset = manifest.config.find("model.preset");
  const auto is_it = [&](const ModelPreset& one) { return one.name == preset->second; };
  if (preset != manifest.config.end() && std::ranges::any_of(model_presets(), is_it)) {
    base.preset = preset->second;
    words.push_back("--preset " + shell_word(base.preset));
  }
  base.model = find_model_preset(base.preset).config;
  const SettingTexts usual = all_settings(base), &kept = manifest.config.empty() ? manifest.model : manifest.config;
  for (const ConfigField& field : config_fields()) {
    const auto saved = kept.find(field.key);
    if (is_of_model(field.key) && saved != kept.end() && saved->second != usual.at(field.key))
      words.push_back(shell_words_of(field, saved->second));
  }
  return join(words, " ");
}

[[noreturn]] void refuse(const std::string& folder, const std::string& what, const std::string& saved,
                         const std::string& now, const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "checkpoint",
                                            .what = quote(folder) + ": " + what,
                                            .got = now,
                                            .want = saved + ", as saved",
                                            .fix = fix});
}

void check_setting(const SettingTexts& saved, const SettingTexts& now, const std::string& key,
                   const std::string& folder, const std::string& what, const std::string& fix) {
  const auto before = saved.find(key), after = now.find(key);
  if (before == saved.end() || after == now.end() || before->second == after->second) return;
  const std::string flag = flag_of(key);
  refuse(folder, what, flag + " " + before->second, flag + " " + after->second, fix);
}

// Rotary positions have no weights, so a model can be fine-tuned on longer sequences, with positions stretched for
// them.
bool is_rotary_position(std::string_view key) {
  for (const std::string_view group : {"model.seq_length", "model.rope_", "model.local_rope_", "yarn."}) {
    if (key.starts_with(group)) return true;
  }
  return false;
}

bool is_free(const TrainConfig& config, std::string_view key) {
  return config.finetune && config.model.position != PositionKind::kLearned && is_rotary_position(key);
}

bool is_free_to_run(const TrainConfig& config, std::string_view key) {
  if (key == "moe.capacity_factor") return true;
  const bool is_base = key == "model.rope_theta" || key == "model.local_rope_theta";
  return config.model.position != PositionKind::kLearned && is_rotary_position(key) && !is_base;
}

OtherModel other_model(const SettingTexts& before, const TrainConfig& config,
                       bool (*is_free)(const TrainConfig&, std::string_view)) {
  const SettingTexts now = model_settings(config);
  OtherModel other;
  for (const auto& [key, value] : before) {
    const auto found = now.find(key);
    if (is_free(config, key) || found == now.end() || found->second == value) continue;
    other.now.push_back(flag_of(key) + " " + found->second);
    other.saved.push_back(flag_of(key) + " " + value);
  }
  return other;
}

void check_model(const CheckpointManifest& manifest, const TrainConfig& config, const std::string& folder) {
  // A setting that came after the checkpoint was saved had its default.
  SettingTexts before = manifest.model;
  if (!before.empty()) before.merge(model_settings(TrainConfig{}));
  const OtherModel other = other_model(before, config, is_free);
  if (other.now.empty()) return;
  require_same_model(other, folder, "of all settings of the model pass " + model_flags(manifest, folder));
}

void check_type(const CheckpointManifest& manifest, const TrainConfig& config, const std::string& folder) {
  const TensorType want = config.params_dtype == "fp64" ? TensorType::kF64 : TensorType::kF32;
  for (const auto& [name, tensor] : manifest.tensors) {
    // 16-bit and 32-bit weights are interchangeable: the stored dtype may change when a run resumes.
    const bool wide = tensor.type == TensorType::kF64;
    if (!name.starts_with("weight/") || (is_float(tensor.type) && wide == (want == TensorType::kF64))) continue;
    refuse(folder, "its weights have a different type", std::string(ranklab::name(tensor.type)),
           std::string(ranklab::name(want)) + " (--params-dtype " + config.params_dtype + ")",
           "set --params-dtype as it was saved");
  }
}

// The last digits of shares depend on the sum of the weights: 0.7 0.2 0.1 are the same shares as 7 2 1, and give the
// same sequences.
bool same_data(const std::string& key, const std::string& now, const std::string& saved) {
  constexpr double kRounding = 1e-14;
  if (now == saved || !key.starts_with("share")) return now == saved;
  double a = 0, b = 1;
  std::from_chars(now.data(), now.data() + now.size(), a);
  std::from_chars(saved.data(), saved.data() + saved.size(), b);
  return std::abs(a - b) < kRounding;
}

void check_data(const CheckpointManifest& manifest, const SettingTexts& data, const std::string& folder) {
  for (const auto& [key, value] : manifest.data) {
    const auto now = data.find(key);
    if (now != data.end() && same_data(key, now->second, value)) continue;
    refuse(folder, "the data is not what the run was trained on", key + " " + value,
           key + " " + (now == data.end() ? "not known" : now->second),
           "pass the same --data-path (and --validation-fraction or --valid-data-path), or --finetune to start on "
           "other data");
  }
}

}  // namespace

SettingTexts all_settings(const TrainConfig& config) {
  SettingTexts texts;
  for (const ConfigField& field : config_fields()) texts[field.key] = field.get(config);
  return texts;
}

SettingTexts model_settings(const TrainConfig& config) {
  SettingTexts texts;
  for (const ConfigField& field : config_fields()) {
    if (shapes_model(field.key)) texts[field.key] = field.get(config);
  }
  return texts;
}

std::map<std::string, int64_t> layout_sizes(const RunPlan& plan) {
  std::map<std::string, int64_t> sizes = {{"world", plan.mesh.world_size()}, {"zero_stage", plan.zero_stage}};
  if (plan.mesh.dims().replicas > 1) sizes["replicas"] = plan.mesh.dims().replicas;
  if (plan.mesh.size(Axis::kCp) > 1) sizes["cp"] = plan.mesh.size(Axis::kCp);
  for (const Axis axis : {Axis::kTp, Axis::kPp, Axis::kDp, Axis::kEp, Axis::kEtp, Axis::kEdp})
    sizes[std::string(name(axis))] = plan.mesh.size(axis);
  return sizes;
}

void describe_run(const RunPlan& plan, const SettingTexts& data, CheckpointManifest& manifest) {
  manifest.config = all_settings(plan.config);
  manifest.model = model_settings(plan.config);
  manifest.layout = layout_sizes(plan);
  manifest.data = data;
}

void check_resumable(const CheckpointManifest& manifest, const RunPlan& plan, const SettingTexts& data,
                     const std::string& folder) {
  const TrainConfig& config = plan.config;
  check_model(manifest, config, folder);
  check_type(manifest, config, folder);
  if (config.finetune) return;
  const SettingTexts now = all_settings(config);
  check_setting(manifest.config, now, "train.seed", folder, "the run was started with another seed",
                "pass that seed, or --finetune to start over from the weights");
  check_setting(manifest.config, now, "optim.optimizer", folder, "its states are from a different optimizer",
                "pass that optimizer, or --finetune to start over from the weights");
  check_data(manifest, data, folder);
}

OtherModel other_model_to_run(const SettingTexts& saved, const TrainConfig& config) {
  return other_model(saved, config, is_free_to_run);
}

void require_same_model(const OtherModel& other, const std::string& folder, const std::string& fix) {
  if (other.now.empty()) return;
  refuse(folder, "the checkpoint is from a different model", join(other.saved, ", "), join(other.now, ", "), fix);
}

std::string other_positions(const CheckpointManifest& manifest, const TrainConfig& config) {
  const SettingTexts now = model_settings(config);
  std::string text;
  for (const auto& [key, saved] : manifest.model) {
    const auto found = now.find(key);
    if (!is_free(config, key) || found == now.end() || found->second == saved) continue;
    text += "; " + flag_of(key) + " " + found->second + ", saved with " + saved;
  }
  return text;
}

std::string other_tokens(const CheckpointManifest& manifest, const TrainConfig& config, const std::string& tokenizer) {
  const bool unknown = manifest.tokenizer_xxh3.empty() && manifest.layout.empty();  // imported
  if (!config.finetune || config.mock_data || unknown || manifest.tokenizer_xxh3 == tokenizer) return "";
  const auto named = [](const std::string& hash) { return hash.empty() ? "none" : "the one with hash " + hash; };
  return "--finetune with other tokens than the checkpoint's, whose embeddings they do not fit: the data's tokenizer "
         "is " +
         named(tokenizer) + ", and the checkpoint's is " + named(manifest.tokenizer_xxh3);
}

std::string other_training(const CheckpointManifest& manifest, const TrainConfig& config) {
  const SettingTexts now = all_settings(config);
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  std::string text;
  for (const auto& [key, saved] : manifest.config) {
    const auto found = now.find(key);
    if (!shapes_the_curve(key, config) || found == now.end() || found->second == saved) continue;
    text += (text.empty() ? "; settings that changed: " : ", ") + flag_of(key) + " " + shown(found->second) + " (" +
            shown(saved) + ")";
  }
  return text;
}

std::string other_gemm(const CheckpointManifest& manifest, const TrainConfig& config) {
  const auto kept = manifest.config.find("sim.gemm");
  if (kept == manifest.config.end() || kept->second == config.gemm || kept->second == "auto" || config.gemm == "auto")
    return "";
  return "; its products were " + kept->second + "'s and are " + config.gemm +
         "'s from here on, which changes last digits (--gemm " + kept->second + " keeps them)";
}

std::string origin_text(const CheckpointManifest& manifest) {
  std::string text = "step " + std::to_string(manifest.step);
  if (manifest.layout.empty()) return text + " (imported)";
  std::string layout;
  const auto add = [&](const char* key, const std::string& words, int64_t from) {
    const auto found = manifest.layout.find(key);
    if (found == manifest.layout.end() || found->second < from) return;
    layout += (layout.empty() ? "" : ", ") + words + " " + std::to_string(found->second);
  };
  for (const char* axis : {"dp", "tp", "pp", "ep", "etp"}) add(axis, axis, 2);
  add("zero_stage", "ZeRO", 1);
  add("replicas", "replicas", 2);
  const auto injected = manifest.config.find("museum.inject");
  const bool wrong = injected != manifest.config.end() && !injected->second.empty();
  return text + " (saved by " + (layout.empty() ? "one rank" : layout) +
         (wrong ? ", wrong on purpose: " + injected->second : "") + ")";
}

}  // namespace ranklab
