#include "core/spec/presets/models.h"

namespace ranklab::presets {

// huggingface.co/openai/gpt-oss-20b/config.json and gpt-oss-120b/config.json; YaRN extends 4096 positions to 131072.
ModelConfig gpt_oss(int64_t layers, int64_t experts) {
  return {.num_layers = layers,
          .hidden_size = 2880,
          .ffn_hidden_size = 2880,
          .num_attention_heads = 64,
          .num_query_groups = 8,
          .kv_channels = 64,
          .vocab_size = 201088,
          .seq_length = 4096,
          .activation = ActivationKind::kSwiGluOai,
          .rope_theta = 150000.0,
          .window_size = 128,
          .window_layers = {.skip_freq = 2},
          .add_bias = true,
          .softmax = SoftmaxKind::kLearnable,
          .yarn = {.scaling_factor = 32, .mscale_all_dim = 0, .truncate = false},
          .moe = {.num_experts = experts, .topk = 4, .router_bias = true}};
}

}  // namespace ranklab::presets
