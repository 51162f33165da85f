// Names of modules that several Hugging Face families share (family.h). Thread rule: pure functions.
#pragma once
#include <string>

#include "core/checkpoint/hf/family.h"

namespace ranklab {

// Rules of a Llama layer: its norms, its attention, its MLP.
HfRules llama_norm_rules();
HfRules llama_attention_rules();
HfRules llama_mlp_rules();
// The attention of a class that rotates adjacent rows of a head together.
HfRules neighbours_attention_rules();
// RMSNorms of each head's query and key, as in Qwen3.
HfRules head_norm_rules();
// The router "mlp.gate", and experts that each have Llama's MLP.
HfRules expert_rules();
// Shared experts, under this module name.
HfRules shared_expert_rules(const std::string& module);

}  // namespace ranklab
