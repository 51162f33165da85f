// The config.json of a Hugging Face folder (github.com/huggingface/transformers, "PretrainedConfig") and the model it
// describes. What the file says and ranklab has not (another activation, a window in some layers, another quantization,
// ...) is refused by the key's name; keys that are not known are listed, for the user to judge. Thread rule: pure
// functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/hf_family.h"
#include "core/checkpoint/hf_fp8.h"
#include "core/checkpoint/tensor_type.h"
#include "core/spec/model_config.h"

namespace ranklab {

// `type` of the weights in the folder.
std::string hf_config_json(const ModelConfig& config, const HfFamily& family, TensorType type);

struct HfConfig {
  ModelConfig model = {};
  HfFamily family = {};           // of hf_families()
  std::optional<HfFp8> fp8 = {};  // when matrices are
  std::vector<std::string> unknown_keys = {};
};
// Throws kBadFile naming `path` and the key.
HfConfig read_hf_config(const std::string& text, const std::string& path);

}  // namespace ranklab
