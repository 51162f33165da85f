#include "core/spec/module_table.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "core/spec/attention_span.h"
#include "core/spec/layer_specs.h"

namespace ranklab {
namespace {

class Table {
 public:
  explicit Table(const ModelConfig& config) : c_(config) {}

  std::vector<ModuleRow> make() {
    add("", embedding_spec(c_));
    if (c_.position == PositionKind::kLearned) add("", position_spec(c_));
    for (int64_t first = 0, end = 0; first < c_.num_layers; first = end) {
      while (end < c_.num_layers && kind_of(end) == kind_of(first)) ++end;
      layers("layers.*.", first, end - first, kind_of(first));
    }
    add("", norm_spec(c_, "final_norm", ModulePart::kFinalNorm));
    add_head("", c_.tie_embeddings);
    prediction_modules();
    return std::move(rows_);
  }

 private:
  // The features by which layers differ in their modules.
  struct LayerKind {
    bool softmax = false, linear = false, mamba = false, dense = false, mixture = false;
    bool operator==(const LayerKind&) const = default;
  };
  LayerKind kind_of(int64_t layer) const {
    return {.softmax = c_.has_softmax(layer),
            .linear = c_.is_linear(layer),
            .mamba = c_.is_mamba(layer),
            .dense = c_.has_dense_mlp(layer),
            .mixture = c_.is_moe_layer(layer)};
  }

  void layers(const std::string& prefix, int64_t first, int64_t count, LayerKind kind) {
    if (count == 0) return;
    next_ = {.first_layer = first, .layers = count, .uses = next_.uses, .mtp = next_.mtp};
    const BlockNormSpecs norms =
        block_norm_specs(c_, kind.softmax || kind.linear || kind.mamba, kind.dense || kind.mixture);
    add(prefix, norms.attention);
    if (kind.linear) add_delta_net(prefix + "attention.");
    if (kind.mamba) add_mamba(prefix + "attention.");
    if (kind.softmax)
      c_.mla.enabled() ? add_latent_attention(prefix + "attention.") : add_attention(prefix + "attention.");
    add(prefix, norms.attention_post);
    add(prefix, norms.mlp);
    if (kind.mixture) add_experts(prefix + "mlp.");
    if (kind.dense) add(prefix + "mlp.", mlp_spec(c_));
    next_.per_layer = next_.active_per_layer = 1;
    add(prefix, norms.mlp_post);
    next_ = {};
  }

  void add_attention(const std::string& prefix) {
    const AttentionSpec spec = attention_spec(c_);
    add(prefix, spec.qkv);
    add(prefix, spec.q_norm);
    add(prefix, spec.k_norm);
    add(prefix, spec.sinks);
    add(prefix, spec.out);
  }

  void add_latent_attention(const std::string& prefix) {
    const LatentAttentionSpec spec = latent_attention_spec(c_);
    add(prefix, spec.q_down);
    add(prefix, spec.q_norm);
    add(prefix, spec.q);
    add(prefix, spec.kv_down);
    add(prefix, spec.kv_norm);
    add(prefix, spec.kv_up);
    add(prefix, spec.sinks);
    add(prefix, spec.out);
  }

  void add_delta_net(const std::string& prefix) {
    const DeltaNetSpec spec = delta_net_spec(c_);
    for (const ModuleSpec& module : {spec.in, spec.conv, spec.a_log, spec.dt_bias, spec.norm, spec.out})
      add(prefix, module);
  }

  void add_mamba(const std::string& prefix) {
    const MambaSpec spec = mamba_spec(c_);
    for (const ModuleSpec& module : {spec.in, spec.conv, spec.a_log, spec.dt_bias, spec.d, spec.norm, spec.out})
      add(prefix, module);
  }

  void add_experts(const std::string& prefix) {
    const MoeSpec spec = moe_spec(c_);
    add(prefix, spec.router);
    if (spec.shared) add(prefix + "shared.", *spec.shared);
    add(prefix, spec.shared_gate);
    add(prefix, spec.latent_down);
    add(prefix, spec.latent_up);
    next_.per_layer = c_.moe.num_experts;
    next_.active_per_layer = c_.moe.topk;
    add(prefix + "experts.*.", spec.expert);
  }

  // DeepSeek-V3, arXiv 2412.19437, section 2.2: embedding and head are shared with the model.
  void prediction_modules() {
    if (c_.mtp_num_layers == 0) return;
    const std::string prefix = "mtp.*.";
    const PredictionSpec spec = prediction_spec(c_);
    const ModuleRow module = {.layers = c_.mtp_modules(), .uses = c_.mtp_num_layers / c_.mtp_modules(), .mtp = true};
    next_ = module;
    add(prefix, spec.embedding_norm);
    add(prefix, spec.state_norm);
    add(prefix, spec.projection);
    layers(prefix + "block.", 0, c_.mtp_modules(), kind_of(c_.num_layers));
    next_ = module;
    add(prefix, spec.norm);
    add_head(prefix, true);
  }

  void add(const std::string& prefix, const ModuleSpec& spec) {
    ModuleRow row = next_;
    row.part = spec.part;
    row.parameter = prefix + spec.name + ".weight";
    row.shape = spec.shape;
    row.parts = spec.parts();
    row.split = spec.split;
    row.init = spec.init;
    row.multiplies = spec.multiplies();
    row.is_gate = spec.is_gate;
    row.by_heads = spec.by_heads;
    rows_.push_back(row);
    if (!spec.bias) return;
    row.parameter = prefix + spec.name + ".bias";
    row.shape = {spec.shape.at(0)};
    row.split = spec.bias_split();
    row.init = spec.bias_init;
    row.multiplies = false;
    rows_.push_back(std::move(row));
  }
  void add(const std::string& prefix, const std::optional<ModuleSpec>& spec) {
    if (spec) add(prefix, *spec);
  }
  void add(const std::string& prefix, const MlpSpec& spec) {
    add(prefix, spec.up);
    add(prefix, spec.down);
  }
  // The head's bias is never tied, and MTP modules list only the matrix.
  void add_head(const std::string& prefix, bool tied) {
    ModuleSpec spec = head_spec(c_);
    spec.bias = spec.bias && prefix.empty();
    const size_t row = rows_.size();
    add(prefix, spec);
    rows_[row].tied = tied;
  }

  const ModelConfig& c_;
  ModuleRow next_;  // holds the fields that the rows of a layer share
  std::vector<ModuleRow> rows_;
};

// QK^T and PV of one layer, per head and token: 2 x 2 S (width of a head) forward, of which the causal mask leaves
// half. A window or chunks reduce S; a layer with a recurrence does not depend on S.
double attention_flops_per_token(const ModelConfig& c, int64_t layer, int64_t seq) {
  if (c.is_linear(layer)) return c.linear.flops_per_token();
  if (c.is_mamba(layer))
    return state_space_flops(c.mamba_heads(), c.mamba.num_groups, c.mamba.head_dim, c.mamba.state_dim);
  if (!c.has_attention(layer)) return 0;
  const int64_t widths = c.mla.enabled() ? c.mla.query_head_dim() + c.mla.v_head_dim : 2 * c.head_dim();
  const double span = attention_span(seq, c.window_of_layer(layer), c.chunk_of_layer(layer));
  return span * static_cast<double>(c.num_attention_heads * widths);
}

double mtp_attention_flops(const ModelConfig& c, int64_t seq) {
  double flops = 0;
  for (int64_t depth = 0; depth < c.mtp_num_layers; ++depth)
    flops += attention_flops_per_token(c, c.mtp_layer(depth), seq);
  return flops;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) c == '.' ? void(words.emplace_back()) : words.back().push_back(c);
  return words;
}

// The first "*" in a row's name stands for a layer, the second for an expert.
bool name_starts_with(const ModuleRow& row, const std::vector<std::string>& asked) {
  const std::vector<std::string> own = words_of(row.parameter);
  int64_t first = row.first_layer, count = row.layers;
  if (asked.size() > own.size()) return false;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (own[i] != "*") {
      if (own[i] != asked[i]) return false;
      continue;
    }
    int64_t index = -1;
    const auto [end, error] = std::from_chars(asked[i].data(), asked[i].data() + asked[i].size(), index);
    if (error != std::errc() || end != asked[i].data() + asked[i].size()) return false;
    if (index < first || index >= first + count) return false;
    first = 0;
    count = row.per_layer;
  }
  return true;
}

}  // namespace

int64_t ModuleRow::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

double ModuleRow::forward_flops_per_token() const {
  if (!multiplies) return 0;
  return 2.0 * static_cast<double>(layers * uses * active_per_layer) * static_cast<double>(elements());
}

std::vector<ModuleRow> module_table(const ModelConfig& config) { return Table(config).make(); }

bool names_part_of_model(const ModelConfig& config, std::string_view name) {
  const std::vector<std::string> asked = words_of(name.ends_with(".bias") ? name.substr(0, name.size() - 5) : name);
  const std::vector<ModuleRow> rows = module_table(config);
  return std::ranges::any_of(rows, [&](const ModuleRow& row) { return name_starts_with(row, asked); });
}

ModelCounts count_model(const ModelConfig& c, int64_t seq) {
  ModelCounts counts;
  for (int64_t layer = 0; layer < c.num_layers; ++layer)
    counts.forward_flops_per_token += attention_flops_per_token(c, layer, seq);
  counts.mtp_forward_flops_per_token = mtp_attention_flops(c, seq);
  for (const ModuleRow& row : module_table(c)) {
    (row.mtp ? counts.mtp : counts.total) += row.parameters();
    (row.mtp ? counts.mtp_active : counts.active) += row.active_parameters();
    (row.mtp ? counts.mtp_forward_flops_per_token : counts.forward_flops_per_token) += row.forward_flops_per_token();
    if (row.parameter == "embedding.weight" && !c.tie_embeddings) counts.embedding = row.parameters();
  }
  return counts;
}

LayerFlops flops_of_layers(const ModelConfig& c, int64_t seq) {
  LayerFlops flops;
  flops.layers.resize(static_cast<size_t>(c.num_layers));
  for (int64_t layer = 0; layer < c.num_layers; ++layer)
    flops.layers[static_cast<size_t>(layer)] = attention_flops_per_token(c, layer, seq);
  for (const ModuleRow& row : module_table(c)) {
    const bool in_layers = row.parameter.starts_with("layers.");
    if (!in_layers) flops.behind += row.forward_flops_per_token();
    for (int64_t i = 0; in_layers && i < row.layers; ++i)
      flops.layers[static_cast<size_t>(row.first_layer + i)] +=
          row.forward_flops_per_token() / static_cast<double>(row.layers);
  }
  flops.behind += mtp_attention_flops(c, seq);
  return flops;
}

int64_t kv_cache_elements_per_token(const ModelConfig& c) {
  const int64_t layers = c.softmax_layer_count();
  if (c.mla.enabled()) return layers * (c.mla.kv_lora_rank + c.mla.qk_pos_emb_head_dim);
  return layers * 2 * c.kv_width();
}

}  // namespace ranklab
