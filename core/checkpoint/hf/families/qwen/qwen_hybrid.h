// What the Qwen families with alternating layers of linear and softmax attention (Gated DeltaNet, arXiv 2412.06464)
// have in common: keys of config.json, names of modules, and requirements. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/family.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// The model that a config.json of these families describes before any key is read.
ModelConfig qwen_hybrid_model();
// The keys of sizes up to the norms' epsilon, the sizes of linear attention, and which layers have it.
HfKeys qwen_hybrid_keys();
// Norms, attention, and all of linear attention except its first projection.
HfRules qwen_hybrid_rules();
// Linear attention's projection, whose parts are separate matrices (Qwen3.5).
HfRules separate_projection_rules();
void check_qwen_hybrid(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
