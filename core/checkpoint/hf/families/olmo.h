// What OLMo 2 and 3 have in common: Llama with norms on the outputs of attention and MLP instead of their inputs, and
// RMSNorms over all queries and over all keys of a token. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// The model that a config.json of these families describes before any key is read.
ModelConfig olmo_model();
HfKeys olmo_keys();  // all keys except the last ones of a file
HfRules olmo_layer_rules();
void check_olmo(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
