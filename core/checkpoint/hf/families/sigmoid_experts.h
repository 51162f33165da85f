// What the families with DeepSeek-V3's experts have in common: a sigmoid router with a bias that balances the experts
// (arXiv 2412.19437, section 2.1.2), shared experts, dense first layers, and MTP modules stored as layers after the
// last one. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// `scaling`: the factor on the weights in a file without the key.
HfKeys sigmoid_router_keys(double scaling);
// Must be read last, because it determines whether there are experts at all. `absent`: the value in a file without the
// key.
HfKey first_dense_layers_key(int64_t absent);
HfRules prediction_rules();  // for an MTP layer
// If there are experts, requires such a router, and a shared width that is a multiple of an expert's.
void check_sigmoid_experts(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
