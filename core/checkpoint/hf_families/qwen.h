// What the families of Qwen share: keys for windows of attention, for other positions, which ranklab has
// not, and the keys of those with experts. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf_keys.h"
#include "core/checkpoint/hf_refusal.h"

namespace ranklab {

// The sizes up to the norms' epsilon; `head_dim`: of a file without it (head_dim_key()).
HfKeys qwen_layer_keys(HfJson head_dim);
HfKeys qwen_window_keys();
HfKeys qwen_expert_keys();
// Of layers without biases of linear layers but those of queries, keys and values, if `qkv_bias`, else of attention.
void check_qwen_layers(const HfRefusal& refusal, const ModelConfig& config, bool qkv_bias);

}  // namespace ranklab
