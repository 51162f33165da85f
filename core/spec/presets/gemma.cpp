#include "core/spec/presets/models.h"

namespace ranklab::presets {
namespace {

// What Gemma 2 and 3 share; heads are wider than hidden_size / num_attention_heads.
ModelConfig gemma(int64_t hidden, int64_t ffn, int64_t heads, int64_t groups, int64_t vocab, int64_t seq) {
  return {.num_layers = 26,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .kv_channels = 256,
          .vocab_size = vocab,
          .seq_length = seq,
          .activation = ActivationKind::kGeGlu,
          .norm_epsilon = 1e-6,
          .norm_placement = NormPlacement::kBoth,
          .norm_1p = true,
          .tie_embeddings = true,
          .scale_embeddings = true};
}

}  // namespace

ModelConfig gemma2_2b() {
  ModelConfig c = gemma(2304, 9216, 8, 4, 256000, 8192);
  c.window_size = 4096;
  c.window_layers = {.skip_freq = 2};
  c.attn_logit_softcapping = 50;
  c.final_logit_softcapping = 30;
  return c;
}

ModelConfig gemma3_1b() {
  ModelConfig c = gemma(1152, 6912, 4, 1, 262144, 32768);
  c.rope_theta = 1e6;
  c.local_rope_theta = 1e4;
  c.window_size = 512;
  c.window_layers = {.skip_freq = 6};
  c.qk_norm = true;
  return c;
}

}  // namespace ranklab::presets
