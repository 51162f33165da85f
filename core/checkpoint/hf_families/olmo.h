// What OLMo 2 and 3 share: Llama with norms of what attention and MLP add to the residual stream instead of what they
// see, and RMSNorms of all queries and of all keys of a token. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf_keys.h"
#include "core/checkpoint/hf_refusal.h"
#include "core/checkpoint/hf_rules.h"

namespace ranklab {

// What a file of one of them means before its first key.
ModelConfig olmo_model();
HfKeys olmo_keys();  // up to the ending
HfRules olmo_layer_rules();
void check_olmo(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
