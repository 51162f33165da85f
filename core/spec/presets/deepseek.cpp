#include "core/spec/presets/models.h"

namespace ranklab::presets {

// huggingface.co/deepseek-ai/DeepSeek-V2-Lite/config.json; trained on sequences of 4096 (arXiv 2405.04434, appendix B).
ModelConfig deepseek_v2_lite() {
  return {.num_layers = 27,
          .hidden_size = 2048,
          .ffn_hidden_size = 10944,
          .num_attention_heads = 16,
          .vocab_size = 102400,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .init_std = 0.006,
          .mla = {.kv_lora_rank = 512, .qk_head_dim = 128, .qk_pos_emb_head_dim = 64, .v_head_dim = 128},
          .yarn = {.scaling_factor = 40, .mscale = 0.707, .mscale_all_dim = 0.707},
          .moe = {.num_experts = 64,
                  .topk = 6,
                  .ffn_hidden_size = 1408,
                  .shared_ffn_hidden_size = 2 * 1408,
                  .first_dense_layers = 1,
                  .normalize_topk = false,
                  .balancing = LoadBalancing::kSeqAuxLoss,
                  .aux_loss_coeff = 1e-3}};
}

// huggingface.co/deepseek-ai/DeepSeek-V2/config.json; trained on sequences of 4096 (arXiv 2405.04434, section 3.1).
ModelConfig deepseek_v2() {
  ModelConfig c = deepseek_v2_lite();
  c.num_layers = 60;
  c.hidden_size = 5120;
  c.ffn_hidden_size = 12288;
  c.num_attention_heads = 128;
  c.mla.q_lora_rank = 1536;
  c.yarn.mscale = c.yarn.mscale_all_dim = 1;
  c.moe.num_experts = 160;
  c.moe.ffn_hidden_size = 1536;
  c.moe.shared_ffn_hidden_size = 2 * 1536;
  c.moe.num_groups = 8;
  c.moe.group_topk = 3;
  c.moe.group_best = 1;
  c.moe.scaling_factor = 16;
  return c;
}

// huggingface.co/deepseek-ai/DeepSeek-V3/config.json; trained on sequences of 4096 (arXiv 2412.19437, section 4.2),
// then extended with YaRN.
ModelConfig deepseek_v3() {
  return {.num_layers = 61,
          .hidden_size = 7168,
          .ffn_hidden_size = 18432,
          .num_attention_heads = 128,
          .vocab_size = 129280,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .init_std = 0.006,
          .mla = {.q_lora_rank = 1536,
                  .kv_lora_rank = 512,
                  .qk_head_dim = 128,
                  .qk_pos_emb_head_dim = 64,
                  .v_head_dim = 128},
          .yarn = {.scaling_factor = 40},
          .moe = {.num_experts = 256,
                  .topk = 8,
                  .ffn_hidden_size = 2048,
                  .shared_ffn_hidden_size = 2048,
                  .first_dense_layers = 3,
                  .score = RouterScore::kSigmoid,
                  .num_groups = 8,
                  .group_topk = 4,
                  .scaling_factor = 2.5,
                  .balancing = LoadBalancing::kSeqAuxLoss,
                  .aux_loss_coeff = 1e-4,
                  .expert_bias = true},
          .mtp_num_layers = 1,
          .mtp_loss_weight = 0.3};
}

// A small version with the sizes of nano-train's train_4d.
ModelConfig deepseek_v3_tiny() {
  ModelConfig c = deepseek_v3();
  c.num_layers = 5;
  c.hidden_size = 128;
  c.ffn_hidden_size = 256;
  c.num_attention_heads = 8;
  c.vocab_size = 256;
  c.seq_length = 128;
  c.init_std = 0.02;
  c.mla = {.q_lora_rank = 64, .kv_lora_rank = 32, .qk_head_dim = 8, .qk_pos_emb_head_dim = 8, .v_head_dim = 8};
  c.yarn.original_seq_length = 64;
  c.yarn.scaling_factor = 2;
  c.moe.num_experts = 8;
  c.moe.topk = 2;
  c.moe.ffn_hidden_size = 128;
  c.moe.shared_ffn_hidden_size = 128;
  c.moe.first_dense_layers = 1;
  c.moe.num_groups = 4;
  c.moe.group_topk = 2;
  c.moe.bias_update_rate = 0.01;  // larger, since runs are short
  return c;
}

// huggingface.co/moonshotai/Kimi-K2-Base/config.json
ModelConfig kimi_k2() {
  ModelConfig c = deepseek_v3();
  c.num_attention_heads = 64;
  c.vocab_size = 163840;
  c.init_std = 0.02;
  c.rope_theta = 50000;
  c.yarn.scaling_factor = 32;
  c.yarn.beta_fast = 1;
  c.moe.num_experts = 384;
  c.moe.first_dense_layers = 1;
  c.moe.num_groups = c.moe.group_topk = 1;
  c.moe.scaling_factor = 2.827;
  c.mtp_num_layers = 0;
  return c;
}

}  // namespace ranklab::presets
