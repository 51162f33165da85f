// Small models of each kind, for decoding.
#pragma once
#include "core/spec/model_config.h"

namespace ranklab::decode_models {

inline constexpr int64_t kSeq = 12, kVocab = 13;

inline ModelConfig llama() {
  return {.num_layers = 2,
          .hidden_size = 32,
          .ffn_hidden_size = 24,
          .num_attention_heads = 8,
          .num_query_groups = 4,
          .vocab_size = kVocab,
          .seq_length = kSeq,
          .init_std = 0.2};
}

inline ModelConfig gpt2() {
  ModelConfig c = llama();
  c.num_query_groups = 0;
  c.norm = NormKind::kLayerNorm;
  c.position = PositionKind::kLearned;
  c.activation = ActivationKind::kGelu;
  c.add_bias = true;
  c.tie_embeddings = true;
  c.dropout = 0.2;
  return c;
}

inline ModelConfig latent(int64_t q_lora) {
  ModelConfig c = llama();
  c.num_query_groups = 0;
  c.mla = {.q_lora_rank = q_lora, .kv_lora_rank = 6, .qk_head_dim = 6, .qk_pos_emb_head_dim = 4, .v_head_dim = 5};
  c.yarn = {.scaling_factor = 4, .original_seq_length = 8};
  c.mtp_num_layers = 1;
  return c;
}

// What latent attention has from other models.
inline ModelConfig latent_with_all() {
  ModelConfig c = latent(10);
  c.norm = NormKind::kLayerNorm;
  c.add_bias = true;
  c.window_size = 4;
  c.window_layers = {.skip_freq = 2};
  c.local_rope_theta = 50;
  c.query_pre_attn_scalar = 5;
  c.attn_logit_softcapping = 0.5;
  return c;
}

inline ModelConfig latent_learned_positions() {
  ModelConfig c = latent(0);
  c.yarn = {};
  c.mtp_num_layers = 0;
  c.position = PositionKind::kLearned;
  c.add_attention_bias = true;
  return c;
}

inline ModelConfig experts() {
  ModelConfig c = latent(10);
  c.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 12, .shared_ffn_hidden_size = 8, .first_dense_layers = 1};
  return c;
}

inline ModelConfig experts_in_turn() {
  ModelConfig c = experts();
  c.moe.topk = 1;
  c.moe.force_balance = true;
  return c;
}

inline ModelConfig qwen() {
  ModelConfig c = llama();
  c.kv_channels = 6;
  c.add_qkv_bias = true;
  c.qk_norm = true;
  return c;
}

inline ModelConfig llama3() {
  ModelConfig c = llama();
  c.add_attention_bias = true;
  c.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 4, .original_seq_length = 8, .low_freq_factor = 0.5};
  return c;
}

inline ModelConfig window() {
  ModelConfig c = llama();
  c.window_size = 4;
  return c;
}

inline ModelConfig some_windows() {
  ModelConfig c = window();
  c.num_layers = 3;
  c.window_layers = {.skip_freq = 2};
  c.local_rope_theta = 50;
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 8};
  return c;
}

// The layer without positions has the window, and none has any.
inline ModelConfig smollm3() {
  ModelConfig c = window();
  c.rope_layers = {.skip_freq = 2};
  c.window_layers = {.pattern = {false, true}};
  return c;
}

// Sinks of all heads, a bounded gate and biases everywhere.
inline ModelConfig gpt_oss() {
  ModelConfig c = window();
  c.window_layers = {.skip_freq = 2};
  c.softmax = SoftmaxKind::kLearnable;
  c.activation = ActivationKind::kSwiGluOai;
  c.add_bias = true;
  c.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 16, .router_bias = true};
  return c;
}

// Chunks of five in two of three layers, the third without positions and with queries that grow.
inline ModelConfig llama4() {
  ModelConfig c = llama();
  c.num_layers = 3;
  c.rope_layers = c.window_layers = {.skip_freq = 3};
  c.attention_chunk = 5;
  c.qk_l2_norm = true;
  c.query_temperature_scale = 0.5;
  c.query_temperature_floor = 4;
  c.moe = {.num_experts = 4,
           .topk = 1,
           .ffn_hidden_size = 12,
           .shared_ffn_hidden_size = 8,
           .layers = {.pattern = {false, true}},
           .score = RouterScore::kSigmoid,
           .normalize_topk = false,
           .weigh_inputs = true};
  return c;
}

// A mixer a layer, of each kind that has no experts.
inline ModelConfig nemotron_h() {
  ModelConfig c = llama();
  c.num_layers = 4;
  c.hybrid_pattern = "M*-M";
  c.mamba = {.num_heads = 8, .head_dim = 6, .state_dim = 5, .num_groups = 4};
  c.position = PositionKind::kNone;
  c.activation = ActivationKind::kSquaredRelu;
  return c;
}

// Linear attention in two of three layers, gated softmax attention in the third.
inline ModelConfig qwen3_next() {
  ModelConfig c = llama();
  c.num_layers = 3;
  c.attention_output_gate = c.qk_norm = true;
  c.linear = {.kind = LinearAttentionKind::kGatedDeltaNet,
              .layers = {.skip_freq = 3},
              .num_key_heads = 4,
              .num_value_heads = 8,
              .key_head_dim = 6,
              .value_head_dim = 5};
  return c;
}

// Chunks and a window that is shorter, or longer.
inline ModelConfig chunks_and_windows(int64_t window) {
  ModelConfig c = llama();
  c.attention_chunk = 5;
  c.window_size = window;
  return c;
}

inline ModelConfig latent_chunks() {
  ModelConfig c = latent_with_all();
  c.attention_chunk = 5;
  c.rope_layers = {.skip_freq = 2};
  c.query_temperature_scale = 0.5;
  c.query_temperature_floor = 3;
  return c;
}

inline ModelConfig without_positions() {
  ModelConfig c = latent(0);
  c.yarn = {};
  c.position = PositionKind::kNone;
  return c;
}

inline ModelConfig olmo2(int64_t groups) {
  ModelConfig c = llama();
  c.num_query_groups = groups;
  c.norm_placement = NormPlacement::kBehind;
  c.qk_norm = true;
  c.qk_norm_width = QkNormWidth::kAllHeads;
  return c;
}

inline ModelConfig gemma2() {
  ModelConfig c = llama();
  c.norm_placement = NormPlacement::kBoth;
  c.norm_1p = c.scale_embeddings = c.tie_embeddings = true;
  c.activation = ActivationKind::kGeGlu;
  c.query_pre_attn_scalar = 5;
  c.attn_logit_softcapping = 0.5;
  c.final_logit_softcapping = 0.7;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
  return c;
}

inline ModelConfig gemma3() {
  ModelConfig c = llama();
  c.norm_placement = NormPlacement::kBoth;
  c.norm_1p = c.scale_embeddings = c.tie_embeddings = true;
  c.activation = ActivationKind::kGeGlu;
  c.qk_norm = true;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
  c.local_rope_theta = 20;
  return c;
}

// Embeddings, branches, scores and logits are multiplied.
inline ModelConfig granite() {
  ModelConfig c = llama();
  c.embedding_multiplier = 12;
  c.residual_multiplier = 0.3;
  c.query_pre_attn_scalar = 9;
  c.logit_scale = 0.25;
  return c;
}

// Norms on both sides; half of each head turns, as adjacent elements.
inline ModelConfig glm4() {
  ModelConfig c = llama();
  c.kv_channels = 8;
  c.rotary_percent = 0.5;
  c.rotary_interleaved = c.add_qkv_bias = true;
  c.norm_placement = NormPlacement::kBoth;
  return c;
}

// One norm without a bias for both branches; the layer without a window has no positions.
inline ModelConfig cohere2() {
  ModelConfig c = llama();
  c.norm = NormKind::kLayerNorm;
  c.norm_bias = false;
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.tie_embeddings = true;
  c.logit_scale = 0.5;
  c.window_size = 4;
  c.window_layers = c.rope_layers = {.skip_freq = 2};
  return c;
}

inline ModelConfig gpt_neox() {
  ModelConfig c = llama();
  c.num_query_groups = 0;
  c.kv_channels = 8;
  c.rotary_percent = 0.25;
  c.norm = NormKind::kLayerNorm;
  c.activation = ActivationKind::kGeluErf;
  c.add_bias = true;
  c.residual_form = ResidualForm::kParallel;
  return c;
}

inline ModelConfig phi2() {
  ModelConfig c = llama();
  c.norm = NormKind::kLayerNorm;
  c.activation = ActivationKind::kGelu;
  c.add_bias = c.add_head_bias = true;
  c.residual_form = ResidualForm::kParallelOneNorm;
  return c;
}

inline ModelConfig yarn() {
  ModelConfig c = llama();
  c.yarn = {.scaling_factor = 4, .original_seq_length = 8, .mscale_all_dim = 0};
  c.kv_channels = 8;
  c.rotary_percent = 0.5;
  return c;
}

inline ModelConfig dynamic_positions(int64_t original) {
  ModelConfig c = llama();
  c.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 3, .original_seq_length = original};
  return c;
}

inline ModelConfig long_rope(int64_t original) {
  ModelConfig c = llama();
  c.rope_scaling = {.kind = RopeScalingKind::kLongRope,
                    .factor = 2,
                    .original_seq_length = original,
                    .short_factors = {1, 2},
                    .long_factors = {1.5, 6}};
  return c;
}

inline ModelConfig qwen_experts() {
  ModelConfig c = qwen();
  c.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 12, .shared_ffn_hidden_size = 8, .shared_gate = true};
  return c;
}

}  // namespace ranklab::decode_models
