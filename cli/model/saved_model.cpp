#include "cli/model/saved_model.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/folder.h"
#include "core/checkpoint/hf/import.h"
#include "core/checkpoint/run_folder.h"
#include "core/checkpoint/tensor_source.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

bool is_model_key(const std::string& key) { return is_model_setting(key) && key != "model.preset"; }

}  // namespace

std::map<std::string, std::string> settings_of(const ModelConfig& model) {
  TrainConfig config;
  config.model = model;
  std::map<std::string, std::string> texts;
  for (const ConfigField& field : config_fields()) {
    if (is_model_key(field.key)) texts[field.key] = field.get(config);
  }
  return texts;
}

ModelConfig model_of(const CheckpointManifest& manifest, const std::string& path) {
  TrainConfig config;
  const auto read = [&](const std::map<std::string, std::string>& settings) {
    for (const auto& [key, text] : settings) {
      if (is_model_key(key)) set_config_field(config, key, text);
    }
  };
  try {
    read(manifest.config);
    read(manifest.model);
    validate(config.model, 1, false);
  } catch (const Error& error) {
    refuse_checkpoint_file(path, "its settings are not those of a model: " + error.text().what,
                           printable(error.text().got), error.text().want);
  }
  return config.model;
}

SavedModel open_saved_model(const std::string& folder) {
  SavedModel saved;
  if (is_hf_folder(folder)) {
    auto model = std::make_unique<HfModel>(folder);
    saved.kind = model->architecture();
    saved.config = model->config();
    saved.notes = model->notes();
    saved.tensors = std::move(model);
    return saved;
  }
  saved.checkpoint = std::make_unique<Checkpoint>(checkpoint_named(folder));
  saved.kind = "checkpoint";
  saved.config = model_of(saved.checkpoint->manifest(), saved.checkpoint->folder());
  saved.tensors = std::make_unique<CheckpointTensors>(*saved.checkpoint);
  return saved;
}

}  // namespace ranklab
