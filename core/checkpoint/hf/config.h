// The config.json of a Hugging Face folder (github.com/huggingface/transformers, "PretrainedConfig") and the model it
// describes. A feature of the file that ranklab lacks (another activation, a window in some layers, another
// quantization, ...) is refused by the key's name; unknown keys are listed, for the user to judge. Thread rule: pure
// functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/hf/family.h"
#include "core/checkpoint/hf/fp8.h"
#include "core/checkpoint/tensor_type.h"
#include "core/spec/model_config.h"

namespace ranklab {

// `type`: the element type of the weights in the folder.
std::string hf_config_json(const ModelConfig& config, const HfFamily& family, TensorType type);

struct HfConfig {
  ModelConfig model = {};
  std::string whole = {};         // HfTextPart::whole
  HfFamily family = {};           // one of hf_families()
  std::optional<HfFp8> fp8 = {};  // set when matrices are FP8
  bool mxfp4 = false;             // whether the experts are MXFP4
  std::vector<std::string> unknown_keys = {};
};
// An object of limited depth without duplicate keys. Throws kBadFile naming `path`.
HfJson parse_hf_json(const std::string& text, const std::string& path);
// Throws kBadFile naming `path` and the key.
HfConfig read_hf_config(const std::string& text, const std::string& path);

}  // namespace ranklab
