#include "core/runtime/checkpoint/model_flags.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"
#include "core/config/train_config.h"
#include "core/runtime/checkpoint/settings.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

// Settings that affect what the model computes in training, not how it is exported.
bool is_of_model(std::string_view key) {
  return is_model_setting(key) && key != "model.preset" && !key.starts_with("model.hf_");
}

std::string shell_words_of(const ConfigField& field, const std::string& value) {
  if (field.flags.empty() || value.empty()) return "--set " + shell_word(field.key + "=" + value);
  return words_of(field, shell_word(value));
}

}  // namespace

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

}  // namespace ranklab
