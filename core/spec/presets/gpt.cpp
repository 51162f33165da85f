#include "core/spec/presets/models.h"

namespace ranklab::presets {

ModelConfig scaled_down(ModelConfig c, int64_t layers) {
  c.num_layers = layers;
  c.hidden_size = 128;
  c.ffn_hidden_size = 352;
  c.num_attention_heads = 8;
  c.num_query_groups = 4;
  c.vocab_size = 256;
  c.seq_length = 128;
  return c;
}

ModelConfig gpt2_124m() {
  return {.num_layers = 12,
          .hidden_size = 768,
          .ffn_hidden_size = 3072,
          .num_attention_heads = 12,
          .vocab_size = 50257,
          .seq_length = 1024,
          .norm = NormKind::kLayerNorm,
          .position = PositionKind::kLearned,
          .activation = ActivationKind::kGelu,
          .dropout = 0.1,
          .add_bias = true,
          .tie_embeddings = true};
}

// As in table 2.1 of the GPT-3 paper, but without the sparse attention of every other layer.
ModelConfig gpt_3b() {
  ModelConfig c = gpt2_124m();
  c.num_layers = 32;
  c.hidden_size = 2560;
  c.ffn_hidden_size = 10240;
  c.num_attention_heads = 32;
  c.seq_length = 2048;
  c.dropout = 0;
  return c;
}

// The width and heads of nanoGPT's character-level model. With a vocabulary of 4096 the head costs as much as a layer,
// so two pipeline stages are balanced.
ModelConfig gpt_10m() {
  return {.num_layers = 5,
          .hidden_size = 384,
          .ffn_hidden_size = 1024,
          .num_attention_heads = 6,
          .vocab_size = 4096,
          .seq_length = 256,
          .tie_embeddings = true};
}

ModelConfig peer(int64_t hidden, int64_t ffn, int64_t vocab, int64_t seq) {
  return {.num_layers = 8,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = 8,
          .vocab_size = vocab,
          .seq_length = seq};
}

}  // namespace ranklab::presets
