#include "core/spec/presets/models.h"

namespace ranklab::presets {

// Trained on 8192 positions, then on longer sequences with scaled rotary frequencies: by 8 in Llama 3.1, by 32 in 3.2
// (huggingface.co/meta-llama/Llama-3.1-8B and Llama-3.2-1B, config.json).
ModelConfig llama(int64_t layers, int64_t hidden, int64_t ffn, double stretch, bool tied) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = 32,
          .num_query_groups = 8,
          .vocab_size = 128256,
          .seq_length = 8192,
          .rope_theta = 500000.0,
          .tie_embeddings = tied,
          .rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = stretch}};
}

ModelConfig llama_70b() {
  ModelConfig c = llama(80, 8192, 28672, 8, false);
  c.num_attention_heads = 64;
  return c;
}

ModelConfig tinytron(int64_t layers, int64_t heads, int64_t groups, int64_t hidden, int64_t ffn) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .vocab_size = 50304,
          .seq_length = 4096,
          .tie_embeddings = true};
}

// From scripts/debug_gpt_0.3b_a0.17b in Tinytron, whose name counts parameters differently.
ModelConfig moe_03b_a017b() {
  ModelConfig c = tinytron(12, 32, 4, 768, 3072);
  c.moe = {.num_experts = 8, .topk = 2, .ffn_hidden_size = 768};
  return c;
}

// arXiv 2407.21783 table 3
ModelConfig llama_405b() {
  ModelConfig c = llama(126, 16384, 53248, 8, false);
  c.num_attention_heads = 128;
  return c;
}

// huggingface.co/mistralai/Mixtral-8x7B-v0.1/config.json
ModelConfig mixtral_8x7b() {
  return {.num_layers = 32,
          .hidden_size = 4096,
          .ffn_hidden_size = 14336,
          .num_attention_heads = 32,
          .num_query_groups = 8,
          .vocab_size = 32000,
          .seq_length = 4096,
          .rope_theta = 1e6,
          .moe = {.num_experts = 8, .topk = 2, .balancing = LoadBalancing::kAuxLoss, .aux_loss_coeff = 0.02}};
}

// The text model; huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct/config.json
ModelConfig llama4_scout() {
  return {.num_layers = 48,
          .hidden_size = 5120,
          .ffn_hidden_size = 16384,
          .num_attention_heads = 40,
          .num_query_groups = 8,
          .vocab_size = 202048,
          .seq_length = 8192,
          .rope_theta = 500000.0,
          .rope_layers = {.skip_freq = 4},
          .window_layers = {.skip_freq = 4},
          .attention_chunk = 8192,
          .qk_l2_norm = true,
          .query_temperature_scale = 0.1,
          .rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 16, .high_freq_factor = 1},
          .moe = {.num_experts = 16,
                  .topk = 1,
                  .ffn_hidden_size = 8192,
                  .shared_ffn_hidden_size = 8192,
                  .score = RouterScore::kSigmoid,
                  .normalize_topk = false,
                  .weigh_inputs = true}};
}

// huggingface.co/meta-llama/Llama-4-Maverick-17B-128E-Instruct/config.json
ModelConfig llama4_maverick() {
  ModelConfig c = llama4_scout();
  c.qk_l2_norm = false;
  c.rope_scaling = {};
  c.moe.num_experts = 128;
  c.moe.layers = {.pattern = {false, true}};
  return c;
}

ModelConfig llama4_tiny() {
  ModelConfig c = scaled_down(llama4_scout());
  c.attention_chunk = c.query_temperature_floor = 32;
  c.rope_scaling = {};
  c.moe.num_experts = 8;
  c.moe.ffn_hidden_size = c.moe.shared_ffn_hidden_size = 128;
  c.moe.layers = {.pattern = {false, true}};
  return c;
}

}  // namespace ranklab::presets
