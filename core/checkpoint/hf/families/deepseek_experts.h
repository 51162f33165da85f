// What the families with DeepSeek's experts (arXiv 2401.06066) have in common: shared experts and dense first layers.
// From DeepSeek-V3 on (arXiv 2412.19437, section 2.1.2): a sigmoid router with a bias that balances the experts, and
// MTP modules stored as layers after the last one. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// The counts and the width of routed experts, and the number of shared ones.
HfKeys deepseek_expert_keys();
// The number of shared experts; read after the width of an expert. `absent`: the value in a file without the key; null:
// none.
HfKey shared_experts_key(const std::string& key, HfJson absent);
// The factor on the weights. `absent`: the value in a file without the key.
HfKey scaling_factor_key(double absent);
// The number of groups of experts, and of those that a token may use.
HfKeys group_keys();
// All of these, and the keys of groups of experts and of normalized weights.
HfKeys sigmoid_router_keys(double scaling);
// Must be read last, because it determines whether there are experts at all. `absent`: the value in a file without the
// key.
HfKey first_dense_layers_key(int64_t absent, RouterScore score = RouterScore::kSigmoid);
HfRules prediction_rules();  // for an MTP layer
// Requires experts in all layers but the first ones, and a shared width that is a multiple of an expert's.
void check_deepseek_experts(const HfRefusal& refusal, const ModelConfig& config);
// Requires groups that are scored by their two best experts, where tokens are limited to some.
void check_group_scores(const HfRefusal& refusal, const MoeConfig& experts);
// What check_deepseek_experts() and check_group_scores() require, and a sigmoid router, if there are experts at all.
void check_sigmoid_experts(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
