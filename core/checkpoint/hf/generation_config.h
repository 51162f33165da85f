// generation_config.json of a Hugging Face folder: how generate() there draws tokens and what ends them. Nothing here
// reads it; a model that came with one goes back with it, and one trained here with what --hf-generation-config says.
// Thread rule: pure functions.
#pragma once
#include <string>

#include "core/spec/model_config.h"

namespace ranklab {

inline constexpr const char* kGenerationConfigName = "generation_config.json";

// As ModelConfig keeps it: in one line. Throws kBadFile naming `path` when it is no JSON object.
std::string kept_generation_config(const std::string& text, const std::string& path);
// As save_pretrained() writes it, byte for byte what it wrote; "": the model has none. Throws kBadFile.
std::string generation_config_text(const ModelConfig& config);

}  // namespace ranklab
