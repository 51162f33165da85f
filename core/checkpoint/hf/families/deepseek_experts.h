// What the families with DeepSeek's experts share (arXiv 2401.06066): shared experts of whole ones' widths, and dense
// first layers. With those of DeepSeek-V3 (arXiv 2412.19437, section 2.1.2): a router of sigmoids whose bias balances
// the experts, and MTP modules as the layers after the last. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// The counts and the width of routed experts, and the number of shared ones.
HfKeys deepseek_expert_keys();
// The factor on weights. `absent`: the value in a file that does not say.
HfKey scaling_factor_key(double absent);
// All of these with groups of experts and normalized weights.
HfKeys sigmoid_router_keys(double scaling);
// Must be read last: it decides whether there are experts at all. `absent`: the value in a file without the key.
HfKey first_dense_layers_key(int64_t absent, RouterScore score = RouterScore::kSigmoid);
HfRules prediction_rules();  // of an MTP layer
// Requires experts in all layers but the first ones, and shared experts.
void check_deepseek_experts(const HfRefusal& refusal, const ModelConfig& config);
// ... if there are experts, with a router of sigmoids.
void check_sigmoid_experts(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
