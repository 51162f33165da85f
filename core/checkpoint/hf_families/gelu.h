// What GPT-NeoX and Phi share: LayerNorm, rotary positions in part, a GELU of either kind, biases of all linear layers.
// Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf_key.h"
#include "core/checkpoint/hf_refusal.h"

namespace ranklab {

// What a file of one of them means before its first key.
ModelConfig gelu_model();
bool has_gelu_form(const ModelConfig& config);
// "hidden_act". `absent`: of a file without it.
HfKey gelu_key(const char* absent);
void check_gelu_layers(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
