// Named model sizes, one row each in presets.cpp. Torch-free. Thread rule: immutable.
#pragma once
#include <string>
#include <vector>

#include "core/model/model_config.h"

namespace ranklab {

struct ModelPreset {
  std::string name;    // "gpt2_124m"
  std::string source;  // where the numbers are published
  ModelConfig config;
};

const std::vector<ModelPreset>& model_presets();
// Throws kInvalidArgument naming the nearest preset.
const ModelConfig& model_preset(const std::string& name);

}  // namespace ranklab
