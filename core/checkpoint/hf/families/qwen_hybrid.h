// What the Qwen families share whose layers take turns between linear and softmax attention (Gated DeltaNet, arXiv
// 2412.06464): keys of config.json, names of modules, and what they require. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/family.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

// A file of these families before any key is read.
ModelConfig qwen_hybrid_model();
// The sizes up to the norms' epsilon, those of linear attention, and which layers have it.
HfKeys qwen_hybrid_keys();
// Norms, attention and all of linear attention but its first projection.
HfRules qwen_hybrid_rules();
// Linear attention's projection, whose parts are matrices of their own (Qwen3.5).
HfRules separate_projection_rules();
void check_qwen_hybrid(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
