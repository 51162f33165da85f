// What GPT-NeoX and Phi have in common: LayerNorm, partial rotary embeddings, a GELU of either kind, and biases on all
// linear layers. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/key.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {

// The model that a config.json of these families describes before any key is read.
ModelConfig gelu_model();
bool has_gelu_form(const ModelConfig& config);
// The key "hidden_act". `absent`: the value in a file without the key.
HfKey gelu_key(const char* absent);
void check_gelu_layers(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
