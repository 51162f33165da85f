// Tiny models of the Hugging Face families without experts.
#pragma once
#include "core/spec/model_config.h"

namespace ranklab::checkpoint_samples {

inline ModelConfig tiny_llama() {
  return {.num_layers = 2,
          .hidden_size = 8,
          .ffn_hidden_size = 3,
          .num_attention_heads = 4,
          .num_query_groups = 2,
          .vocab_size = 5,
          .seq_length = 16,
          .rope_theta = 500.0};
}
inline ModelConfig tiny_gpt2() {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 4,
                .ffn_hidden_size = 6,
                .num_attention_heads = 2,
                .vocab_size = 5,
                .seq_length = 7};
  c.norm = NormKind::kLayerNorm;
  c.position = PositionKind::kLearned;
  c.activation = ActivationKind::kGelu;
  c.dropout = 0.25;
  c.add_bias = c.tie_embeddings = true;
  return c;
}
inline ModelConfig tiny_qwen2() {
  ModelConfig c = tiny_llama();
  c.add_qkv_bias = c.tie_embeddings = true;
  return c;
}
inline ModelConfig tiny_qwen3() {  // heads wider than a share of the hidden size
  ModelConfig c = tiny_llama();
  c.kv_channels = 6;
  c.qk_norm = true;
  return c;
}
inline ModelConfig tiny_llama3() {  // Llama 3.1's stretch, and biases of attention alone
  ModelConfig c = tiny_llama();
  c.rope_scaling = {.kind = RopeScalingKind::kLlama3,
                    .factor = 32,
                    .original_seq_length = 12,
                    .low_freq_factor = 1.5,
                    .high_freq_factor = 3};
  c.add_attention_bias = true;
  return c;
}
inline ModelConfig tiny_linear() {
  ModelConfig c = tiny_llama();
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 2.5};
  return c;
}
inline ModelConfig tiny_dynamic() {  // as a file has it: the longest sequence is that times the factor
  ModelConfig c = tiny_llama();
  c.kv_channels = 4;
  c.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 2, .original_seq_length = 8};
  return c;
}
inline ModelConfig tiny_mistral() {
  ModelConfig c = tiny_llama();
  c.hf_architecture = "MistralForCausalLM";
  c.yarn = {.scaling_factor = 4, .original_seq_length = 4, .mscale_all_dim = 0, .attention_factor = 1.25};
  c.yarn.truncate = false;
  return c;
}
inline ModelConfig tiny_qwen3_bias() {
  ModelConfig c = tiny_qwen3();
  c.add_attention_bias = true;
  return c;
}
inline ModelConfig tiny_partly() {  // half of each head turns; Phi-3's one matrix
  ModelConfig c = tiny_llama();
  c.hidden_size = 16;
  c.num_attention_heads = 2;
  c.num_query_groups = 1;
  c.rotary_percent = 0.5;
  c.hf_architecture = "Phi3ForCausalLM";
  return c;
}
inline ModelConfig tiny_stablelm() {
  ModelConfig c = tiny_partly();
  c.hf_architecture = "auto";
  c.norm = NormKind::kLayerNorm;
  c.add_qkv_bias = true;
  return c;
}
inline ModelConfig tiny_stablelm_parallel() {
  ModelConfig c = tiny_stablelm();
  c.residual_form = ResidualForm::kParallelOneNorm;
  return c;
}
inline ModelConfig tiny_window() {
  ModelConfig c = tiny_llama();
  c.hf_architecture = "MistralForCausalLM";
  c.window_size = 6;
  return c;
}
inline ModelConfig tiny_qwen2_window() {
  ModelConfig c = tiny_qwen2();
  c.window_size = 6;
  return c;
}
inline ModelConfig tiny_qwen2_some_windows() {  // its second layer alone
  ModelConfig c = tiny_qwen2_window();
  c.window_layers = {.pattern = {false, true}};
  return c;
}
inline ModelConfig tiny_olmo2() {
  ModelConfig c = tiny_llama();
  c.norm_placement = NormPlacement::kBehind;
  c.qk_norm = true;
  c.qk_norm_width = QkNormWidth::kAllHeads;
  return c;
}
inline ModelConfig tiny_olmo3() {
  ModelConfig c = tiny_olmo2();
  c.window_size = 5;
  c.window_layers = {.skip_freq = 2};
  c.local_rope_theta = c.rope_theta;
  c.yarn = {.scaling_factor = 4, .original_seq_length = 4, .mscale_all_dim = 0};
  return c;
}
inline ModelConfig tiny_gemma2() {
  ModelConfig c = tiny_llama();
  c.kv_channels = 6;
  c.norm_placement = NormPlacement::kBoth;
  c.norm_1p = c.scale_embeddings = c.tie_embeddings = true;
  c.activation = ActivationKind::kGeGlu;
  c.query_pre_attn_scalar = 9;
  c.attn_logit_softcapping = 2.5;
  c.final_logit_softcapping = 3.5;
  c.window_size = 5;
  c.window_layers = {.skip_freq = 2};
  return c;
}
inline ModelConfig tiny_gemma3() {
  ModelConfig c = tiny_gemma2();
  c.qk_norm = true;
  c.query_pre_attn_scalar = c.attn_logit_softcapping = c.final_logit_softcapping = 0;
  c.local_rope_theta = 70;
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 4};
  return c;
}
inline ModelConfig tiny_gpt_neox() {  // half of each head turns
  ModelConfig c = tiny_llama();
  c.hidden_size = 16;
  c.num_attention_heads = 2;
  c.num_query_groups = 0;
  c.rotary_percent = 0.5;
  c.norm = NormKind::kLayerNorm;
  c.activation = ActivationKind::kGeluErf;
  c.add_bias = true;
  c.residual_form = ResidualForm::kParallel;
  return c;
}
inline ModelConfig tiny_phi2() {
  ModelConfig c = tiny_gpt_neox();
  c.activation = ActivationKind::kGelu;
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.add_head_bias = true;
  return c;
}
inline ModelConfig tiny_smollm3() {  // its second layer has no positions
  ModelConfig c = tiny_llama();
  c.hf_architecture = "SmolLM3ForCausalLM";
  c.rope_layers = {.skip_freq = 2};
  return c;
}
inline ModelConfig tiny_smollm3_window() {
  ModelConfig c = tiny_smollm3();
  c.rope_layers = {.skip_freq = 1};
  c.add_attention_bias = true;
  c.window_size = 6;
  c.window_layers = {.pattern = {false, true}};
  return c;
}
inline ModelConfig tiny_nemotron() {  // half of each head turns
  ModelConfig c = tiny_stablelm();
  c.add_qkv_bias = false;
  c.norm_1p = true;
  c.activation = ActivationKind::kSquaredRelu;
  return c;
}
inline ModelConfig tiny_qwen3_5() {  // linear attention and gated softmax attention in turn
  ModelConfig c = tiny_llama();
  c.num_attention_heads = 2;
  c.num_query_groups = 1;
  c.kv_channels = 8;
  c.rotary_percent = 0.5;
  c.norm_1p = c.qk_norm = c.attention_output_gate = true;
  c.linear = {.kind = LinearAttentionKind::kGatedDeltaNet,
              .layers = {.skip_freq = 2},
              .num_key_heads = 2,
              .num_value_heads = 4,
              .key_head_dim = 3,
              .value_head_dim = 2};
  return c;
}
inline ModelConfig tiny_long() {  // half of a head turns: two pairs
  ModelConfig c = tiny_partly();
  c.rope_scaling = {.kind = RopeScalingKind::kLongRope,
                    .factor = 4,
                    .original_seq_length = 4,
                    .short_factors = {1, 1.25},
                    .long_factors = {1.5, 6}};
  return c;
}
inline ModelConfig tiny_seed_oss() {  // heads wider than a share of the hidden size
  ModelConfig c = tiny_llama();
  c.hf_architecture = "SeedOssForCausalLM";
  c.kv_channels = 6;
  c.add_qkv_bias = true;
  return c;
}
inline ModelConfig tiny_granite() {
  ModelConfig c = tiny_llama();
  c.hf_architecture = "GraniteForCausalLM";
  c.tie_embeddings = true;
  c.embedding_multiplier = 12;
  c.residual_multiplier = 0.22;
  c.query_pre_attn_scalar = 1 / (0.3 * 0.3);
  c.logit_scale = 1 / 6.0;
  return c;
}
inline ModelConfig tiny_glm4() {  // half of each head turns
  ModelConfig c = tiny_partly();
  c.hf_architecture = "auto";
  c.norm_placement = NormPlacement::kBoth;
  c.add_qkv_bias = true;
  return c;
}
inline ModelConfig tiny_ernie() {
  ModelConfig c = tiny_qwen3();
  c.hf_architecture = "Ernie4_5ForCausalLM";
  c.qk_norm = false;
  c.add_bias = c.tie_embeddings = true;
  return c;
}
inline ModelConfig tiny_cohere() {
  ModelConfig c = tiny_llama();
  c.norm = NormKind::kLayerNorm;
  c.norm_bias = false;
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.tie_embeddings = true;
  c.logit_scale = 0.0625;
  return c;
}
inline ModelConfig tiny_cohere2() {  // its second layer has neither a window nor positions
  ModelConfig c = tiny_cohere();
  c.add_attention_bias = true;
  c.window_size = 5;
  c.window_layers = c.rope_layers = {.skip_freq = 2};
  return c;
}

}  // namespace ranklab::checkpoint_samples
