// What the Gemma families have in common: norms that multiply by 1 + their weight, before and after attention and MLP;
// GeGLU; embeddings multiplied by the square root of their width; some layers with sliding-window attention. Thread
// rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// The model that a config.json of these families describes before any key is read.
ModelConfig gemma_model();
HfKeys gemma_keys();
// A number that may be null, which corresponds to 0 here. `absent`: the value in a file without the key.
HfKey softcapping_key(const std::string& key, double ModelConfig::*member, HfJson absent);
HfRules gemma_norm_rules();
void check_gemma(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
