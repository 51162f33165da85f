#include "core/spec/module_table.h"

#include <functional>
#include <numeric>
#include <utility>

#include "core/spec/attention_span.h"

namespace ranklab {
namespace {

using Part = ModulePart;
using Split = ModuleSplit;

class Table {
 public:
  explicit Table(const ModelConfig& config) : c_(config) {}

  std::vector<ModuleRow> make() {
    rows_.push_back(
        {.parameter = "embedding.weight", .shape = {c_.vocab_size, c_.hidden_size}, .split = Split::kVocabulary});
    if (c_.position == PositionKind::kLearned)
      rows_.push_back({.parameter = "position.weight", .shape = {c_.seq_length, c_.hidden_size}});
    const int64_t dense = c_.moe.enabled() ? c_.moe.first_dense_layers : c_.num_layers;
    layers("layers.*.", 0, dense, false);
    layers("layers.*.", dense, c_.num_layers - dense, true);
    norm(Part::kFinalNorm, "final_norm");
    head("head.weight", c_.tie_embeddings);
    if (c_.add_head_bias) add(Part::kHead, "head.bias", {c_.vocab_size}, Split::kVocabulary, false);
    prediction_modules();
    return std::move(rows_);
  }

 private:
  void layers(const std::string& prefix, int64_t first, int64_t count, bool mixture) {
    if (count == 0) return;
    next_ = {.first_layer = first, .layers = count, .mtp = next_.mtp};
    if (c_.has_norms_before()) norm(Part::kAttentionNorm, prefix + "attention_norm");
    if (c_.mla.enabled()) {
      latent_attention(prefix + "attention.");
    } else {
      attention(prefix + "attention.");
    }
    if (c_.has_norms_behind()) norm(Part::kAttentionNorm, prefix + "attention_post_norm");
    if (c_.has_mlp_norm()) norm(Part::kMlpNorm, prefix + "mlp_norm");
    if (mixture) {
      experts(prefix + "mlp.");
    } else {
      mlp(Part::kMlpUp, Part::kMlpDown, prefix + "mlp.", c_.ffn_hidden_size);
    }
    next_.per_layer = next_.active_per_layer = 1;
    if (c_.has_norms_behind()) norm(Part::kMlpNorm, prefix + "mlp_post_norm");
    next_ = {};
  }

  void attention(const std::string& prefix) {
    const Part in = Part::kAttentionIn;
    const int64_t rows = c_.qkv_width();
    linear(in, prefix + "qkv", rows, c_.hidden_size, Split::kColumn, c_.has_qkv_bias());
    if (c_.qk_norm) qk_norms(prefix);
    linear(Part::kAttentionOut, prefix + "out", c_.hidden_size, c_.query_width(), Split::kRow,
           c_.has_attention_out_bias());
  }

  void qk_norms(const std::string& prefix) {
    const Part in = Part::kAttentionIn;
    if (c_.qk_norm_width == QkNormWidth::kAllHeads) {
      add(in, prefix + "q_norm.weight", {c_.query_width()}, Split::kColumn, false);
      add(in, prefix + "k_norm.weight", {c_.kv_width()}, Split::kColumn, false);
      return;
    }
    for (const char* norm : {"q_norm.weight", "k_norm.weight"}) {
      vector(in, prefix + norm, c_.head_dim());
      rows_.back().by_heads = true;
    }
  }

  void latent_attention(const std::string& prefix) {
    const MlaConfig& m = c_.mla;
    const int64_t heads = c_.num_attention_heads, query = heads * m.query_head_dim();
    const Part in = Part::kAttentionIn;
    if (m.q_lora_rank > 0) {
      linear(in, prefix + "q_down", m.q_lora_rank, c_.hidden_size, Split::kReplicated);
      vector(in, prefix + "q_norm.weight", m.q_lora_rank);
      linear(in, prefix + "q_up", query, m.q_lora_rank, Split::kColumn);
    } else {
      linear(in, prefix + "q", query, c_.hidden_size, Split::kColumn);
    }
    linear(in, prefix + "kv_down", m.kv_lora_rank + m.qk_pos_emb_head_dim, c_.hidden_size, Split::kReplicated);
    vector(in, prefix + "kv_norm.weight", m.kv_lora_rank);
    linear(in, prefix + "kv_up", heads * (m.qk_head_dim + m.v_head_dim), m.kv_lora_rank, Split::kColumn);
    linear(Part::kAttentionOut, prefix + "out", c_.hidden_size, heads * m.v_head_dim, Split::kRow);
  }

  void mlp(Part up, Part down, const std::string& prefix, int64_t ffn) {
    const bool gated = c_.has_gated_mlp();
    linear(up, prefix + (gated ? "gate_up" : "up"), (gated ? 2 : 1) * ffn, c_.hidden_size, Split::kColumn);
    linear(down, prefix + "down", c_.hidden_size, ffn, Split::kRow);
  }

  void experts(const std::string& prefix) {
    gate(Part::kRouter, prefix + "router", c_.moe.num_experts);
    if (c_.moe.shared_ffn_hidden_size > 0)
      mlp(Part::kSharedExperts, Part::kSharedExperts, prefix + "shared.", c_.moe.shared_ffn_hidden_size);
    if (c_.moe.shared_gate) gate(Part::kSharedExperts, prefix + "shared_gate", 1);
    next_.per_layer = c_.moe.num_experts;
    next_.active_per_layer = c_.moe.topk;
    mlp(Part::kExperts, Part::kExperts, prefix + "experts.*.", c_.expert_ffn());
  }

  // DeepSeek-V3, arXiv 2412.19437, section 2.2: embedding and head are the model's.
  void prediction_modules() {
    if (c_.mtp_num_layers == 0) return;
    const std::string prefix = "mtp.*.";
    next_ = {.layers = c_.mtp_num_layers, .mtp = true};
    norm(Part::kMtpIn, prefix + "enorm");
    norm(Part::kMtpIn, prefix + "hnorm");
    linear(Part::kMtpIn, prefix + "proj", c_.hidden_size, 2 * c_.hidden_size, Split::kReplicated);
    layers(prefix + "block.", 0, c_.mtp_num_layers, c_.is_moe_layer(c_.num_layers));
    next_ = {.layers = c_.mtp_num_layers, .mtp = true};
    norm(Part::kFinalNorm, prefix + "norm");
    head(prefix + "head.weight", true);
  }

  void add(Part part, std::string name, std::vector<int64_t> shape, Split split, bool multiplies) {
    ModuleRow row = next_;
    row.part = part;
    row.parameter = std::move(name);
    row.shape = std::move(shape);
    row.split = split;
    row.multiplies = multiplies;
    rows_.push_back(std::move(row));
  }
  void vector(Part part, const std::string& name, int64_t size) { add(part, name, {size}, Split::kReplicated, false); }
  void norm(Part part, const std::string& name) {
    vector(part, name + ".weight", c_.hidden_size);
    if (c_.norm == NormKind::kLayerNorm) vector(part, name + ".bias", c_.hidden_size);
  }
  void linear(Part part, const std::string& name, int64_t out, int64_t in, Split split) {
    linear(part, name, out, in, split, c_.add_bias);
  }
  void linear(Part part, const std::string& name, int64_t out, int64_t in, Split split, bool has_bias) {
    add(part, name + ".weight", {out, in}, split, true);
    if (!has_bias) return;
    const bool whole = split == Split::kRow;  // added after the sum over tp
    add(part, name + ".bias", {out}, whole ? Split::kReplicated : split, false);
  }
  void gate(Part part, const std::string& name, int64_t out) {
    linear(part, name, out, c_.hidden_size, Split::kReplicated);
    rows_.back().is_gate = true;
  }
  void head(const std::string& name, bool tied) {
    add(Part::kHead, name, {c_.vocab_size, c_.hidden_size}, Split::kVocabulary, true);
    rows_.back().tied = tied;
  }

  const ModelConfig& c_;
  ModuleRow next_;  // what the rows of a layer have in common
  std::vector<ModuleRow> rows_;
};

// QK^T and PV of one layer: 2 x 2 S (width of a head) forward, half of it causal; S shrinks to a window.
double attention_flops_per_token(const ModelConfig& c, int64_t layer, int64_t seq) {
  const int64_t widths = c.mla.enabled() ? c.mla.query_head_dim() + c.mla.v_head_dim : 2 * c.head_dim();
  return attention_span(seq, c.window_of_layer(layer)) * static_cast<double>(c.num_attention_heads * widths);
}

}  // namespace

std::vector<int64_t> fused_parts(const ModelConfig& model, const ModuleRow& row) {
  const int64_t rows = row.shape[0], kv = model.kv_width();
  if (row.parameter.find(".qkv.") != std::string::npos) return {rows - 2 * kv, kv, kv};
  if (row.parameter.find(".gate_up.") != std::string::npos) return {rows / 2, rows / 2};
  return {rows};
}

const char* name(ModulePart part) {
  switch (part) {
    case Part::kEmbedding:
      return "embedding";
    case Part::kAttentionNorm:
    case Part::kMlpNorm:
    case Part::kFinalNorm:
      return "norms";
    case Part::kAttentionIn:
    case Part::kAttentionOut:
      return "attention";
    case Part::kMlpUp:
    case Part::kMlpDown:
      return "MLP";
    case Part::kRouter:
      return "router";
    case Part::kSharedExperts:
      return "shared experts";
    case Part::kExperts:
      return "routed experts";
    case Part::kHead:
      return "head";
    case Part::kMtpIn:
      return "MTP projection";
  }
  return "?";
}

const char* name(ModuleSplit split) {
  switch (split) {
    case Split::kReplicated:
      return "-";
    case Split::kVocabulary:
      return "vocabulary";
    case Split::kColumn:
      return "out features";
    case Split::kRow:
      return "in features";
  }
  return "?";
}

int64_t ModuleRow::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

double ModuleRow::forward_flops_per_token() const {
  if (!multiplies) return 0;
  return 2.0 * static_cast<double>(layers * active_per_layer) * static_cast<double>(elements());
}

std::vector<ModuleRow> module_table(const ModelConfig& config) { return Table(config).make(); }

ModelCounts count_model(const ModelConfig& c, int64_t seq) {
  ModelCounts counts;
  for (int64_t layer = 0; layer < c.num_layers + c.mtp_num_layers; ++layer)
    (layer < c.num_layers ? counts.forward_flops_per_token : counts.mtp_forward_flops_per_token) +=
        attention_flops_per_token(c, layer, seq);
  for (const ModuleRow& row : module_table(c)) {
    (row.mtp ? counts.mtp : counts.total) += row.parameters();
    (row.mtp ? counts.mtp_active : counts.active) += row.active_parameters();
    (row.mtp ? counts.mtp_forward_flops_per_token : counts.forward_flops_per_token) += row.forward_flops_per_token();
    if (row.parameter == "embedding.weight" && !c.tie_embeddings) counts.embedding = row.parameters();
  }
  return counts;
}

int64_t kv_cache_elements_per_token(const ModelConfig& c) {
  if (c.mla.enabled()) return c.num_layers * (c.mla.kv_lora_rank + c.mla.qk_pos_emb_head_dim);
  return c.num_layers * 2 * c.kv_width();
}

}  // namespace ranklab
