// What the families of Gemma share: norms that multiply with 1 + their weight before and behind attention and MLP,
// GeGLU, embeddings times the root of their width, layers with a window of attention among others without. Thread rule:
// pure functions.
#pragma once
#include "core/checkpoint/hf_keys.h"
#include "core/checkpoint/hf_refusal.h"
#include "core/checkpoint/hf_rules.h"

namespace ranklab {

// What a file of one of them means before its first key.
ModelConfig gemma_model();
HfKeys gemma_keys();
// A number that may be null, which is 0 here. `absent`: of a file without it.
HfKey softcapping_key(const std::string& key, double ModelConfig::*member, HfJson absent);
HfRules gemma_norm_rules();
void check_gemma(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
