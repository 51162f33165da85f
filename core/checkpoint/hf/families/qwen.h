// What the Qwen families share: keys of sliding-window attention and of multimodal positions, which ranklab does not
// support, and the keys of the families with experts. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {

// The sizes up to the norms' epsilon; `head_dim`: the value in a file without the key (head_dim_key()).
HfKeys qwen_layer_keys(HfJson head_dim);
// Without a list of layers the window is that of layers from max_window_layers on, and in Qwen2-MoE that of every other
// layer before it. Qwen3-MoE's class reads neither: all layers have it.
HfKeys qwen_window_keys();
HfKeys qwen2_moe_window_keys();
HfKeys qwen3_moe_window_keys();
HfKeys qwen_expert_keys(bool normalized = false);  // `normalized`: normalization_key()
// Requires layers whose linear layers have no bias, except those of queries, keys and values if `qkv_bias`, else those
// of attention.
void check_qwen_layers(const HfRefusal& refusal, const ModelConfig& config, bool qkv_bias);

}  // namespace ranklab
