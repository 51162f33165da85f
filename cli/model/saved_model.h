// The model in a user's folder: a checkpoint (or a folder of checkpoints: its newest), or a Hugging Face folder. Thread
// rule: one thread.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_source.h"
#include "core/spec/model_config.h"

namespace ranklab {

// Every setting of a model by its key, including settings of training (but not the preset's name).
std::map<std::string, std::string> settings_of(const ModelConfig& model);
// The model that a checkpoint's settings define; `path` is for messages. Throws kBadFile naming the setting.
ModelConfig model_of(const CheckpointManifest& manifest, const std::string& path);

struct SavedModel {
  std::string kind = {};  // "checkpoint", or the architecture of a Hugging Face folder
  ModelConfig config = {};
  std::unique_ptr<Checkpoint> checkpoint = {};  // null for a Hugging Face folder
  std::unique_ptr<TensorSource> tensors = {};   // "weight/NAME", ...
  std::vector<std::string> notes = {};
};
// Throws kIo if the folder is neither, and kBadFile.
SavedModel open_saved_model(const std::string& folder);

}  // namespace ranklab
