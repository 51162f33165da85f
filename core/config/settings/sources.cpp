#include "core/config/settings/sources.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/base/size_error.h"
#include "core/base/text.h"
#include "core/comm/parallel_dims.h"
#include "core/config/batch_choice.h"
#include "core/config/context_choice.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/fitting_sizes.h"
#include "core/config/settings/nearest_key.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

const std::string kPresetKey = "model.preset", kBatchKey = "train.global_batch_size";
const std::string kPrefix = "RANKLAB_";

// Adds the origin of the refused value to the error.
template <typename Action>
void with_origin(const std::string& origin, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    ErrorText text = error.text();
    text.where = origin;
    throw Error(error.kind(), text);
  }
}

// True when a source above the preset set this field.
bool is_given(const std::map<std::string, std::string>& origins, const std::string& key) {
  const auto it = origins.find(key);
  return it != origins.end() && it->second != "default" && !it->second.starts_with("preset ");
}

// Adapts the default minimum to the rate: if the rate is smaller than the default minimum, the minimum is a tenth of
// it.
void settle_min_lr(TrainConfig& config, const std::map<std::string, std::string>& origins) {
  if (!is_given(origins, "optim.min_lr") && config.min_lr > config.lr) config.min_lr = config.lr / 10;
}

void settle_validation(TrainConfig& config, const std::map<std::string, std::string>& origins) {
  if (!is_given(origins, "data.validation_fraction") && !config.valid_data_path.empty()) config.validation_fraction = 0;
}

bool starts_like_a_table(const std::string& name) {
  return std::any_of(config_fields().begin(), config_fields().end(), [&](const ConfigField& field) {
    return name.starts_with(environment_name(field.key.substr(0, field.key.find('.') + 1)));
  });
}

// 16-bit recipes have no blocks; a recipe file may, which is not known before it is read.
bool has_blocks(const std::string& recipe) { return !recipe.empty() && recipe != "bf16" && recipe != "fp16"; }

}  // namespace

bool mentions(const std::string& text, const std::string& flag) {
  for (size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at + 1)) {
    const size_t end = at + flag.size();
    if (end == text.size() || (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '-'))
      return true;
  }
  return false;
}

bool MergedConfig::given(const std::string& key) const { return is_given(origins, key); }

void settle_layout(TrainConfig& config, const std::map<std::string, std::string>& origins) {
  const bool names_a_size = is_given(origins, "parallel.world_size") ||
                            std::ranges::any_of(kLayoutSizes, [&](const char* key) { return is_given(origins, key); });
  const ParallelDims usual = TrainConfig{}.parallel;
  // Tiny models do not split into whole blocks of 128 elements.
  const bool in_blocks = config.precision.fp8 || config.precision.fp4 || has_blocks(config.precision.recipe);
  if (in_blocks && !names_a_size) config.parallel.tp = 1;
  const bool fits = config.parallel.world == usual.world && config.model.num_layers >= usual.pp;
  if (!names_a_size && fits && config.can(Capability::kMakesRanks)) return;
  if (!is_given(origins, "parallel.tp")) config.parallel.tp = 1;
  if (!is_given(origins, "parallel.pp")) config.parallel.pp = 1;
  apply_sep(config);
  ParallelDims& dims = config.parallel;
  if (is_given(origins, "parallel.dp") && dims.dp > 0 && !is_given(origins, "parallel.world_size"))
    dims.world = product_of_axes(dims);
}

MergedConfig merge_config(const TrainConfig& defaults, std::span<const ConfigSetting> settings) {
  MergedConfig merged{defaults, {}};
  std::string preset_origin = "default";
  for (const ConfigSetting& setting : settings) {
    if (setting.key != kPresetKey) continue;
    merged.config.preset = setting.text;
    preset_origin = setting.origin;
  }
  bool brings_batch = false;
  with_origin(preset_origin == "default" ? "config" : preset_origin, [&] {
    const ModelPreset& preset = find_model_preset(merged.config.preset);
    merged.config.model = preset.config;
    brings_batch = preset.global_batch_size > 0;
    if (brings_batch) merged.config.global_batch_size = preset.global_batch_size;
  });
  for (const ConfigField& field : config_fields()) {
    const bool of_preset = is_model_setting(field.key) || (brings_batch && field.key == kBatchKey);
    merged.origins[field.key] = of_preset ? "preset " + merged.config.preset : "default";
  }
  merged.origins[kPresetKey] = preset_origin;
  for (const ConfigSetting& setting : settings) {
    if (setting.key == kPresetKey) continue;
    with_origin(setting.origin, [&] { set_config_field(merged.config, setting.key, setting.text); });
    merged.origins[setting.key] = setting.origin;
  }
  settle_batch(merged.config, merged.origins);
  settle_layout(merged.config, merged.origins);
  settle_min_lr(merged.config, merged.origins);
  settle_validation(merged.config, merged.origins);
  return merged;
}

RunPlan resolve(const TrainConfig& config, const std::map<std::string, std::string>& origins) {
  try {
    return resolve(config);
  } catch (const Error& error) {
    ErrorText text = error.text();
    if (const auto* sizes = dynamic_cast<const SizeError*>(&error)) text = with_fitting_sizes(config, origins, *sizes);
    std::vector<std::string> named;
    for (const ConfigField& field : config_fields()) {
      const auto origin = origins.find(field.key);
      if (!is_given(origins, field.key)) continue;
      const bool mentioned = std::any_of(field.flags.begin(), field.flags.end(), [&](const std::string& flag) {
        return mentions(text.what + "\n" + text.got + "\n" + text.want, flag);
      });
      const bool says_flag = origin->second.starts_with("flag ");
      if (mentioned) named.push_back(says_flag ? origin->second : field.key + " from " + origin->second);
    }
    if (!named.empty()) text.where = join(named, ", ");
    throw Error(error.kind(), text);
  }
}

std::string environment_name(const std::string& key) {
  std::string name = kPrefix;
  for (const char c : key) name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<ConfigSetting> environment_settings(std::span<const std::string> variables) {
  std::map<std::string, std::string> key_of;
  for (const ConfigField& field : config_fields()) key_of[environment_name(field.key)] = field.key;
  std::vector<ConfigSetting> settings;
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (equals == std::string::npos || !name.starts_with(kPrefix)) continue;
    if (const auto it = key_of.find(name); it != key_of.end()) {
      settings.push_back({it->second, variable.substr(equals + 1), "environment " + name});
      continue;
    }
    if (!starts_like_a_table(name)) continue;
    std::string key = lower_case(name.substr(kPrefix.size()));
    key[key.find('_')] = '.';  // the dot between table and name
    const std::string nearest = nearest_config_key(key);
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "environment",
                 .what = "unknown setting",
                 .got = quote(name),
                 .fix = nearest.empty() ? "unset it; ranklab config schema lists every key"
                                        : "did you mean " + quote(environment_name(nearest)) + "?"});
  }
  return settings;
}

std::vector<std::string> process_environment() {
  std::vector<std::string> variables;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

ConfigSetting assignment_setting(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  RANKLAB_CHECK(equals != std::string::npos, ErrorKind::kInvalidArgument, .where = "--set",
                .what = "no value for the setting", .got = quote(assignment), .want = "KEY=VALUE",
                .fix = "write --set optim.lr=1e-3");
  const std::string key = assignment.substr(0, equals);
  const std::string nearest = nearest_config_key(key);
  RANKLAB_CHECK(
      find_field(key), ErrorKind::kInvalidArgument, .where = "--set", .what = "unknown setting", .got = quote(key),
      .fix = nearest.empty() ? "ranklab config schema lists every key" : "did you mean " + quote(nearest) + "?");
  return {key, assignment.substr(equals + 1), "--set"};
}

}  // namespace ranklab
