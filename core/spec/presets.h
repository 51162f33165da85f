// Named model sizes, one row each in presets.cpp. Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/model_config.h"

namespace ranklab {

struct ModelPreset {
  std::string name;    // "gpt2_124m"
  std::string source;  // where the configuration is published
  ModelConfig config;
  int64_t global_batch_size = 0;  // batch size of the benchmark in which the model is used; 0: unspecified
};

const std::vector<ModelPreset>& model_presets();
// Throws kInvalidArgument naming the nearest preset.
const ModelPreset& find_model_preset(const std::string& name);
const ModelConfig& model_preset(const std::string& name);

}  // namespace ranklab
