// Tiny models of the Hugging Face families with experts or latent attention.
#pragma once
#include "tests/checkpoint/hf_dense_models.h"

namespace ranklab::checkpoint_samples {

inline ModelConfig tiny_mixtral() {
  ModelConfig c = tiny_llama();
  c.moe = {
      .num_experts = 3, .topk = 2, .ffn_hidden_size = 5, .balancing = LoadBalancing::kAuxLoss, .aux_loss_coeff = 0.02};
  return c;
}
inline ModelConfig tiny_deepseek() {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 6,
                .ffn_hidden_size = 5,
                .num_attention_heads = 2,
                .vocab_size = 7,
                .seq_length = 32,
                .norm_epsilon = 1e-6};
  c.mla = {.q_lora_rank = 4, .kv_lora_rank = 5, .qk_head_dim = 3, .qk_pos_emb_head_dim = 6, .v_head_dim = 2};
  c.yarn = {.scaling_factor = 2, .original_seq_length = 16};
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 6,
           .first_dense_layers = 1,
           .score = RouterScore::kSigmoid,
           .num_groups = 2,
           .group_topk = 1,
           .scaling_factor = 2.5,
           .expert_bias = true};
  c.mtp_num_layers = 1;
  return c;
}
inline ModelConfig tiny_deepseek_v2() {  // softmax-routed, queries not compressed
  ModelConfig c = tiny_deepseek();
  c.mla.q_lora_rank = 0;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 6,
           .first_dense_layers = 1,
           .normalize_topk = false,
           .scaling_factor = 1.5};
  c.mtp_num_layers = 0;
  return c;
}
inline ModelConfig tiny_latent() {  // no experts, queries not compressed
  ModelConfig c = tiny_deepseek();
  c.mla.q_lora_rank = 0;
  c.moe = {};
  c.yarn = {};
  return c;
}
inline ModelConfig tiny_latent_of_experts() {  // whose settings of experts have stayed
  ModelConfig c = tiny_latent();
  c.moe = tiny_deepseek().moe;
  c.moe.num_experts = 0;
  return c;
}
inline ModelConfig tiny_qwen2_moe() {
  ModelConfig c = tiny_qwen2();
  c.moe = {.num_experts = 3,
           .topk = 2,
           .ffn_hidden_size = 5,
           .shared_ffn_hidden_size = 7,
           .shared_gate = true,
           .normalize_topk = false};
  return c;
}
inline ModelConfig tiny_qwen3_moe() {  // its first layer dense
  ModelConfig c = tiny_qwen3();
  c.moe = {.num_experts = 3,
           .topk = 2,
           .ffn_hidden_size = 5,
           .first_dense_layers = 1,
           .balancing = LoadBalancing::kAuxLoss,
           .aux_loss_coeff = 0.02};
  return c;
}
inline ModelConfig tiny_top1() {
  ModelConfig c = tiny_mixtral();
  c.moe.topk = 1;
  c.moe.normalize_top1 = true;
  return c;
}
inline ModelConfig tiny_halves() {
  ModelConfig c = tiny_deepseek();
  c.hf_rope_interleave = false;
  return c;
}
inline ModelConfig tiny_glm4_moe() {  // half of each head turns: its norms, too, have rows in another order there
  ModelConfig c = tiny_partly();
  c.hf_architecture = "auto";
  c.qk_norm = c.add_qkv_bias = true;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 6,
           .first_dense_layers = 1,
           .score = RouterScore::kSigmoid,
           .scaling_factor = 1.5,
           .expert_bias = true};
  c.mtp_num_layers = 1;
  return c;
}
inline ModelConfig tiny_glm4_moe_plain() {
  ModelConfig c = tiny_glm4_moe();
  c.qk_norm = c.add_qkv_bias = false;
  c.rotary_percent = 1;
  c.mtp_num_layers = 0;
  return c;
}
inline ModelConfig tiny_gpt_oss() {  // its first layer has a window
  ModelConfig c = tiny_llama();
  c.add_bias = c.moe.router_bias = true;
  c.activation = ActivationKind::kSwiGluOai;
  c.softmax = SoftmaxKind::kLearnable;
  c.window_size = 6;
  c.window_layers = {.skip_freq = 2};
  c.moe.num_experts = 3;
  c.yarn = {.scaling_factor = 4, .original_seq_length = 4, .mscale_all_dim = 0, .truncate = false};
  return c;
}
inline ModelConfig tiny_gpt_oss_plain() {
  ModelConfig c = tiny_gpt_oss();
  c.yarn = {};
  c.moe.topk = 1;
  c.moe.normalize_top1 = true;
  return c;
}
inline ModelConfig tiny_llama4() {  // layers in turn: rotary positions and chunks, or neither; dense, or experts
  ModelConfig c = tiny_llama();
  c.num_layers = 4;
  c.kv_channels = 4;
  c.rope_layers = c.window_layers = {.skip_freq = 2};
  c.attention_chunk = 5;
  c.qk_l2_norm = true;
  c.query_temperature_scale = 0.25;
  c.query_temperature_floor = 4;
  c.moe = {.num_experts = 3,
           .topk = 1,
           .ffn_hidden_size = 5,
           .shared_ffn_hidden_size = 5,
           .layers = {.pattern = {false, true, false, true}},
           .score = RouterScore::kSigmoid,
           .normalize_topk = false,
           .weigh_inputs = true};
  return c;
}
inline ModelConfig tiny_llama4_plain() {  // all layers alike, of experts
  ModelConfig c = tiny_llama4();
  c.rope_layers = c.window_layers = {};
  c.attention_chunk = 0;
  c.query_temperature_scale = 0;
  c.query_temperature_floor = 8192;
  c.add_attention_bias = true;
  c.moe.layers = {};
  return c;
}
inline ModelConfig tiny_qwen3_moe_some() {  // layers with experts between dense ones
  ModelConfig c = tiny_qwen3_moe();
  c.num_layers = 4;
  c.moe.first_dense_layers = 0;
  c.moe.layers = {.pattern = {true, false, false, true}};
  return c;
}
inline ModelConfig tiny_qwen3_next() {  // ... with experts
  ModelConfig c = tiny_qwen3_5();
  c.moe = {.num_experts = 3, .topk = 2, .ffn_hidden_size = 5, .shared_ffn_hidden_size = 4, .shared_gate = true};
  return c;
}
inline ModelConfig tiny_qwen3_5_moe() {  // ... all experts of a layer in one tensor
  ModelConfig c = tiny_qwen3_next();
  c.hf_architecture = "Qwen3_5MoeForCausalLM";
  c.ffn_hidden_size = c.moe.ffn_hidden_size;
  c.moe.ffn_hidden_size = 0;
  return c;
}
inline ModelConfig tiny_nemotron_h() {  // a mixer a layer; experts in one
  ModelConfig c = tiny_llama();
  c.num_layers = 5;
  c.hybrid_pattern = "M*-EM";
  c.mamba = {.num_heads = 4, .head_dim = 3, .state_dim = 2, .num_groups = 2, .conv_kernel = 3, .min_step = 1e-3};
  c.position = PositionKind::kNone;
  c.activation = ActivationKind::kSquaredRelu;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 5,
           .latent_size = 7,
           .shared_ffn_hidden_size = 4,
           .score = RouterScore::kSigmoid,
           .expert_bias = true};
  return c;
}
inline ModelConfig tiny_granite_moe() {
  ModelConfig c = tiny_granite();
  c.hf_architecture = "GraniteMoeForCausalLM";
  c.moe = {.num_experts = 3, .topk = 2};
  return c;
}
inline ModelConfig tiny_ernie_moe() {  // experts in three layers between two dense ones
  ModelConfig c = tiny_llama();
  c.num_layers = 5;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 5,
           .shared_ffn_hidden_size = 10,
           .layers = {.pattern = {false, true, true, true, false}},
           .expert_bias = true};
  return c;
}

}  // namespace ranklab::checkpoint_samples
