// What the DeepSeek families have in common besides their experts: multi-head latent attention (arXiv 2405.04434,
// section 2.1) in layers of RMSNorm and SwiGLU. Thread rule: pure functions.
#pragma once
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {

HfRules latent_attention_rules();
// The sizes of the model, of its dense layers and of its attention.
HfKeys latent_attention_keys();
void check_latent_attention(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
