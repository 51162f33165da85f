// What OLMo 2 and 3 share: Llama with norms on the outputs of attention and MLP instead of their inputs, and RMSNorms
// over all queries and over all keys of a token. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// The model that a config.json of one of them means before any key is read.
ModelConfig olmo_model();
HfKeys olmo_keys();  // up to the last keys
HfRules olmo_layer_rules();
void check_olmo(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
