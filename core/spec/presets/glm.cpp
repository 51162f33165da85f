#include "core/spec/presets/models.h"

namespace ranklab::presets {

// GLM-4.5-Air; arXiv 2508.06471 table 1, huggingface.co/zai-org/GLM-4.5-Air/config.json
ModelConfig glm4_5_air() {
  return {.num_layers = 46,
          .hidden_size = 4096,
          .ffn_hidden_size = 10944,
          .num_attention_heads = 96,
          .num_query_groups = 8,
          .kv_channels = 128,
          .vocab_size = 151552,
          .seq_length = 4096,
          .rope_theta = 1e6,
          .rotary_percent = 0.5,
          .add_qkv_bias = true,
          .moe = {.num_experts = 128,
                  .topk = 8,
                  .ffn_hidden_size = 1408,
                  .shared_ffn_hidden_size = 1408,
                  .first_dense_layers = 1,
                  .score = RouterScore::kSigmoid,
                  .balancing = LoadBalancing::kSeqAuxLoss,
                  .aux_loss_coeff = 1e-4,
                  .expert_bias = true},
          .mtp_num_layers = 1,
          .mtp_loss_weight = 0.3};
}

// GLM-4.5; the same places
ModelConfig glm4_5() {
  ModelConfig c = glm4_5_air();
  c.num_layers = 92;
  c.hidden_size = 5120;
  c.ffn_hidden_size = 12288;
  c.qk_norm = true;
  c.moe.num_experts = 160;
  c.moe.ffn_hidden_size = c.moe.shared_ffn_hidden_size = 1536;
  c.moe.first_dense_layers = 3;
  c.moe.scaling_factor = 2.5;
  return c;
}

}  // namespace ranklab::presets
