#include "core/spec/presets/models.h"

namespace ranklab::presets {

// huggingface.co/allenai/OLMo-2-1124-7B/config.json
ModelConfig olmo2_7b() {
  return {.num_layers = 32,
          .hidden_size = 4096,
          .ffn_hidden_size = 11008,
          .num_attention_heads = 32,
          .vocab_size = 100352,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .norm_placement = NormPlacement::kBehind,
          .rope_theta = 500000.0,
          .qk_norm = true,
          .qk_norm_width = QkNormWidth::kAllHeads};
}

// Nemotron-4 15B; arXiv 2402.16819 table 1 and section 2
ModelConfig nemotron4_15b() {
  return {.num_layers = 32,
          .hidden_size = 6144,
          .ffn_hidden_size = 24576,
          .num_attention_heads = 48,
          .num_query_groups = 8,
          .vocab_size = 256000,
          .seq_length = 4096,
          .norm = NormKind::kLayerNorm,
          .activation = ActivationKind::kSquaredRelu,
          .norm_1p = true,
          .rotary_percent = 0.5,
          .init_std = 0.0134};
}

// huggingface.co/nvidia/Nemotron-H-8B-Base-8K/config.json.
ModelConfig nemotron_h_8b() {
  ModelConfig c{.num_layers = 52,
                .hybrid_pattern = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
                .hidden_size = 4096,
                .ffn_hidden_size = 21504,
                .num_attention_heads = 32,
                .num_query_groups = 8,
                .vocab_size = 131072,
                .seq_length = 8192};
  c.position = PositionKind::kNone;
  c.activation = ActivationKind::kSquaredRelu;
  c.mamba = {.num_heads = 128, .min_step = 1e-3};
  return c;
}

// The same in small, with experts in place of one MLP, as in Nemotron 3 Nano (arXiv 2512.20848).
ModelConfig nemotron_h_tiny() {
  ModelConfig c = scaled_down(nemotron_h_8b(), 8);
  c.hybrid_pattern = "M-M*MEM*";
  c.mamba = {.num_heads = 16, .head_dim = 16, .state_dim = 16, .num_groups = 8, .min_step = 1e-3};
  c.moe = {.num_experts = 8,
           .topk = 2,
           .ffn_hidden_size = 128,
           .shared_ffn_hidden_size = 128,
           .score = RouterScore::kSigmoid,
           .expert_bias = true};
  return c;
}

// huggingface.co/HuggingFaceTB/SmolLM3-3B/config.json
ModelConfig smollm3_3b() {
  return {.num_layers = 36,
          .hidden_size = 2048,
          .ffn_hidden_size = 11008,
          .num_attention_heads = 16,
          .num_query_groups = 4,
          .vocab_size = 128256,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .rope_theta = 50000.0,
          .rope_layers = {.skip_freq = 4},
          .tie_embeddings = true};
}

}  // namespace ranklab::presets
