// What the families with DeepSeek-V3's experts share: a router of sigmoids whose bias balances the experts (arXiv
// 2412.19437, section 2.1.2), shared experts, dense first layers, and MTP modules as the layers after the last. Thread
// rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// `scaling`: the factor on weights in a file that does not say.
HfKeys sigmoid_router_keys(double scaling);
// Must be read last: it decides whether there are experts at all. `absent`: the value in a file without the key.
HfKey first_dense_layers_key(int64_t absent);
HfRules prediction_rules();  // of an MTP layer
// Requires, if there are experts, such a router, and shared experts of whole ones' widths.
void check_sigmoid_experts(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
