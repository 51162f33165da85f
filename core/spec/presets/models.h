// The models behind the named sizes of presets.h; each is defined in the file of its family. Thread rule: pure
// functions.
#pragma once
#include "core/spec/model_config.h"

namespace ranklab::presets {

// Reduces a model to the size needed in a lesson.
ModelConfig scaled_down(ModelConfig c, int64_t layers = 4);

ModelConfig gpt2_124m();
ModelConfig gpt_3b();
ModelConfig gpt_10m();
ModelConfig peer(int64_t hidden, int64_t ffn, int64_t vocab, int64_t seq);
ModelConfig llama(int64_t layers, int64_t hidden, int64_t ffn, double stretch, bool tied);
ModelConfig llama_70b();
ModelConfig tinytron(int64_t layers, int64_t heads, int64_t groups, int64_t hidden, int64_t ffn);
ModelConfig moe_03b_a017b();
ModelConfig llama_405b();
ModelConfig llama4_scout();
ModelConfig llama4_maverick();
ModelConfig llama4_tiny();
ModelConfig mixtral_8x7b();
ModelConfig deepseek_v2();
ModelConfig deepseek_v2_lite();
ModelConfig deepseek_v3();
ModelConfig deepseek_v3_tiny();
ModelConfig kimi_k2();
ModelConfig qwen3(int64_t layers, int64_t hidden, int64_t ffn, int64_t heads, int64_t groups);
ModelConfig qwen3_0_6b();
ModelConfig qwen3_30b_a3b();
ModelConfig qwen3_moe_tiny();
ModelConfig qwen3_next_80b_a3b();
ModelConfig qwen3_next_tiny();
ModelConfig qwen3_235b_a22b();
ModelConfig gemma2_2b();
ModelConfig gemma3_1b();
ModelConfig glm4_5_air();
ModelConfig glm4_5();
ModelConfig gpt_oss(int64_t layers, int64_t experts);
ModelConfig olmo2_7b();
ModelConfig nemotron4_15b();
ModelConfig nemotron_h_8b();
ModelConfig nemotron_h_tiny();
ModelConfig smollm3_3b();

}  // namespace ranklab::presets
