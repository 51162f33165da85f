// What the Qwen families have in common: keys of sliding-window attention, keys of multimodal positions (which ranklab
// does not support), and the keys of families with experts. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {

// The keys of sizes, up to the norms' epsilon. `head_dim`: the value in a file without the key (head_dim_key()).
HfKeys qwen_layer_keys(HfJson head_dim);
// In a file without a list of layers, the window applies to the layers from max_window_layers on, and in Qwen2-MoE
// instead to every other layer before that one. Qwen3-MoE's class reads neither: all layers have the window.
HfKeys qwen_window_keys();
HfKeys qwen2_moe_window_keys();
HfKeys qwen3_moe_window_keys();
HfKey qwen_experts_key();                          // the number of routed experts
HfKeys qwen_expert_keys(bool normalized = false);  // `normalized`: normalization_key()
// Requires layers whose linear layers have no biases, except for queries, keys and values if `qkv_bias`, or else except
// for all of attention.
void check_qwen_layers(const HfRefusal& refusal, const ModelConfig& config, bool qkv_bias);

}  // namespace ranklab
