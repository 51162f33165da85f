#include "core/spec/head_rows.h"

namespace ranklab {
namespace {

using HeadPart = HeadRow::Part;

bool shares_norms(const ModelConfig& c) { return c.qk_norm && c.qk_norm_width == QkNormWidth::kHead; }

int64_t heads_of_key(const ModelConfig& c) { return c.num_attention_heads / c.query_groups(); }

HeadRow projected(const ModelConfig& c, int64_t row) {
  const int64_t queries = c.query_width(), keys = queries + c.output_gate_width(), values = keys + c.kv_width();
  if (row < queries) return {HeadPart::kQuery, row / c.head_dim()};
  if (row < keys || row >= values) return {};
  return {HeadPart::kKey, (row - keys) / c.head_dim() * heads_of_key(c)};
}

// The norm's weight has the width of one head and applies to all of them, or has the width of all heads.
HeadRow normed(const ModelConfig& c, bool keys, int64_t row) {
  return {keys ? HeadPart::kKey : HeadPart::kQuery, row / c.head_dim() * (keys ? heads_of_key(c) : 1)};
}

// A query head is [nope | rope]; a head of the key/value up-projection is [nope | v].
HeadRow latent(const MlaConfig& m, bool keys, int64_t row) {
  const int64_t width = m.qk_head_dim + (keys ? m.v_head_dim : m.qk_pos_emb_head_dim), head = row / width;
  if (row % width < m.qk_head_dim) return {keys ? HeadPart::kKey : HeadPart::kQuery, head};
  return keys ? HeadRow{} : HeadRow{HeadPart::kRotaryQuery, head};
}

}  // namespace

bool has_head_rows(const ModelConfig& config, std::string_view module) {
  if (config.mla.enabled()) return module == "q" || module == "q_up" || module == "kv_up";
  return config.qk_norm ? module == "q_norm" || module == "k_norm" : module == "qkv";
}

HeadRow head_row(const ModelConfig& config, std::string_view module, int64_t row) {
  if (config.mla.enabled()) return latent(config.mla, module == "kv_up", row);
  return config.qk_norm ? normed(config, module == "k_norm", row) : projected(config, row);
}

int64_t heads_scaled_together(const ModelConfig& config) {
  return shares_norms(config) ? config.num_attention_heads : heads_of_key(config);
}

std::vector<int64_t> layers_of_fixed_logits(const ModelConfig& config) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < config.num_layers + config.mtp_modules(); ++layer)
    if (config.has_qk_l2_norm(layer)) layers.push_back(layer);
  return layers;
}

}  // namespace ranklab
