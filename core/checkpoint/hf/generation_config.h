// The generation_config.json of a Hugging Face folder, which says how generate() in transformers draws tokens and when
// it ends. Nothing here uses it: a model imported with one is exported with it, and a model trained here gets what
// --hf-generation-config says. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/spec/model_config.h"

namespace ranklab {

inline constexpr const char* kGenerationConfigName = "generation_config.json";

// The text as one line, the form in which ModelConfig keeps it. Throws kBadFile naming `path` when it is not a JSON
// object.
std::string kept_generation_config(const std::string& text, const std::string& path);
// The text in the form in which save_pretrained() writes it, byte for byte; "": the model has none. Throws kBadFile.
std::string generation_config_text(const ModelConfig& config);

}  // namespace ranklab
