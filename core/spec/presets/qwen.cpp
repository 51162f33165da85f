#include "core/spec/presets/models.h"

namespace ranklab::presets {

// huggingface.co/Qwen/Qwen3-*/config.json; trained mostly on sequences of 4096 (arXiv 2505.09388, section 3.2).
ModelConfig qwen3(int64_t layers, int64_t hidden, int64_t ffn, int64_t heads, int64_t groups) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .kv_channels = 128,
          .vocab_size = 151936,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .rope_theta = 1e6,
          .qk_norm = true};
}

ModelConfig qwen3_0_6b() {
  ModelConfig c = qwen3(28, 1024, 3072, 16, 8);
  c.tie_embeddings = true;
  return c;
}

// Expert load is balanced over the global batch (section 2).
ModelConfig qwen3_30b_a3b() {
  ModelConfig c = qwen3(48, 2048, 6144, 32, 4);
  c.moe = {.num_experts = 128,
           .topk = 8,
           .ffn_hidden_size = 768,
           .balancing = LoadBalancing::kGlobalAuxLoss,
           .aux_loss_coeff = 1e-3};
  return c;
}

namespace {

ModelConfig scaled_down_qwen(const ModelConfig& whole) {
  ModelConfig c = scaled_down(whole);
  c.kv_channels = 32;
  c.rope_theta = 10000;
  c.moe.num_experts = 8;
  c.moe.topk = 2;
  c.moe.ffn_hidden_size = 128;
  return c;
}

}  // namespace

ModelConfig qwen3_moe_tiny() { return scaled_down_qwen(qwen3_30b_a3b()); }

ModelConfig qwen3_235b_a22b() {
  ModelConfig c = qwen3_30b_a3b();
  c.num_layers = 94;
  c.hidden_size = 4096;
  c.ffn_hidden_size = 12288;
  c.num_attention_heads = 64;
  c.moe.ffn_hidden_size = 1536;
  return c;
}

// huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct/config.json.
ModelConfig qwen3_next_80b_a3b() {
  ModelConfig c = qwen3(48, 2048, 5120, 16, 2);
  c.kv_channels = 256;
  c.norm_1p = true;
  c.rope_theta = 1e7;
  c.rotary_percent = 0.25;
  c.attention_output_gate = true;
  c.linear.kind = LinearAttentionKind::kGatedDeltaNet;
  c.moe = {.num_experts = 512,
           .topk = 10,
           .ffn_hidden_size = 512,
           .shared_ffn_hidden_size = 512,
           .shared_gate = true,
           .balancing = LoadBalancing::kGlobalAuxLoss,
           .aux_loss_coeff = 1e-3};
  return c;
}

ModelConfig qwen3_next_tiny() {
  ModelConfig c = scaled_down_qwen(qwen3_next_80b_a3b());
  c.linear.num_key_heads = 4;
  c.linear.num_value_heads = 8;
  c.linear.key_head_dim = c.linear.value_head_dim = 16;
  c.moe.shared_ffn_hidden_size = c.moe.ffn_hidden_size;
  return c;
}

}  // namespace ranklab::presets
