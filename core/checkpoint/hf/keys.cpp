#include "core/checkpoint/hf/keys.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ranklab {
namespace {

HfKey key_value_heads() {
  const auto get = [](const ModelConfig& c) { return HfJson(c.query_groups()); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const int64_t groups = value.is_null() ? c.num_attention_heads : value.integer();
    c.num_query_groups = groups == c.num_attention_heads ? 0 : groups;
  };
  return {"num_key_value_heads", get, set};
}

// One id, or a list of several.
HfKey end_tokens_key() {
  const auto get = [](const ModelConfig& c) {
    const std::vector<int64_t>& ids = c.hf_eos_tokens;
    return ids.empty() ? HfJson() : ids.size() == 1 ? HfJson(ids[0]) : HfJson(ids);
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    c.hf_eos_tokens.clear();
    if (value.is_null()) return;
    const HfJson list = value.json().is_array() ? value.json() : HfJson::array({value.json()});
    for (const HfJson& id : list) {
      if (!id.is_number_integer()) value.refuse_damaged("a whole number, or a list of them");
      if (id.get<int64_t>() >= 0) c.hf_eos_tokens.push_back(id.get<int64_t>());
    }
  };
  return {"eos_token_id", get, set};
}

}  // namespace

bool is_sane(int64_t size) { return size >= 0 && size < int64_t{1} << 40; }

// Dynamic scaling starts beyond this length, and longrope's factor is its ratio to the original length. Some versions
// also derive YaRN's factor in this way, but current ones take the factor from the file, so the length of a longer
// model is kept.
HfKey positions_key(const std::string& key) {
  const auto get = [](const ModelConfig& c) {
    if (c.rope_scaling.kind == RopeScalingKind::kDynamic) return HfJson(c.rope_scaling.original_seq_length);
    if (c.rope_scaling.kind == RopeScalingKind::kLongRope)
      return HfJson(std::llround(c.rope_scaling.factor * static_cast<double>(c.rope_scaling.original_seq_length)));
    const double stretched = c.yarn.scaling_factor * static_cast<double>(c.yarn.original_seq_length);
    return HfJson(c.yarn.enabled() ? std::max(static_cast<int64_t>(stretched), c.seq_length) : c.seq_length);
  };
  const auto set = [](ModelConfig& c, const HfValue& value) { c.seq_length = value.integer(); };
  return {key, get, set, true};
}

HfKey head_dim_key(HfJson absent) {
  const auto get = [](const ModelConfig& c) { return HfJson(c.head_dim()); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    if (value.integer() < 1) value.refuse_damaged("1 or more");
    const int64_t heads = c.num_attention_heads;
    const bool follows = heads > 0 && c.hidden_size % heads == 0 && value.integer() == c.hidden_size / heads;
    c.kv_channels = follows ? 0 : value.integer();
  };
  return {"head_dim", get, set, false, std::move(absent)};
}

HfKey optional_size_key(const std::string& key, int64_t ModelConfig::*size, HfJson absent) {
  const auto get = [size](const ModelConfig& c) { return c.*size > 0 ? HfJson(c.*size) : HfJson(); };
  const auto set = [size](ModelConfig& c, const HfValue& value) {
    c.*size = value.is_null() ? 0 : value.integer();
    if (!value.is_null() && c.*size < 1) value.refuse_damaged("null, or 1 or more");
  };
  return {key, get, set, false, std::move(absent)};
}

HfKey window_key(HfJson absent) {
  return optional_size_key("sliding_window", &ModelConfig::window_size, std::move(absent));
}

HfKey window_number_key(int64_t absent) {
  HfKey key = window_key(absent);
  key.get = [absent](const ModelConfig& c) { return HfJson(c.window_size > 0 ? c.window_size : absent); };
  return key;
}

HfKeys switched_window_keys() {
  constexpr int64_t kDefault = 4096;  // used when no number follows
  HfKey number = window_key(kDefault);
  number.set = [set = number.set](ModelConfig& c, const HfValue& value) {
    if (c.window_size > 0) set(c, value);
  };
  return {{"use_sliding_window", [](const ModelConfig& c) { return HfJson(c.window_size > 0); },
           [](ModelConfig& c, const HfValue& value) { c.window_size = value.boolean() ? kDefault : 0; }, false, false},
          std::move(number)};
}

void set_local_layers(ModelConfig& c, int64_t ModelConfig::*size, const std::vector<bool>& layers) {
  const bool any = std::ranges::find(layers, true) != layers.end();
  if (!any) c.*size = 0;
  c.window_layers = any ? layer_pattern_of(layers) : LayerPattern{};
}

void set_window_layers(ModelConfig& c, const std::vector<bool>& layers) {
  set_local_layers(c, &ModelConfig::window_size, layers);
}

std::vector<bool> layers_of_kind(const HfValue& list, const std::string& kind) {
  const std::string want = kind + " or full_attention for every layer";
  if (!list.json().is_array()) list.refuse_damaged(want);
  std::vector<bool> layers;
  for (const HfJson& one : list.json()) {
    layers.push_back(one == kind);
    if (!layers.back() && one != "full_attention") list.refuse(want);
  }
  return layers;
}

HfKey local_layers_key(LocalLayers local, bool always) {
  const auto get = [=](const ModelConfig& c) {
    if (!always && (c.*local.size == 0 || c.window_layers.all())) return not_written();
    HfJson kinds = HfJson::array();
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      kinds.push_back(c.*local.size > 0 && c.window_layers.has(layer) ? local.kind : "full_attention");
    return kinds;
  };
  const auto set = [=](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    const std::vector<bool> layers = layers_of_kind(value, local.kind);
    const bool any = std::ranges::find(layers, true) != layers.end();
    if (any && static_cast<int64_t>(layers.size()) != c.num_layers)
      value.refuse_damaged(std::string(local.kind) + " or full_attention for every layer");
    if (any && c.*local.size == 0)
      value.refuse(std::string("full_attention for every layer: the file names no ") + local.size_name);
    set_local_layers(c, local.size, layers);
  };
  return {"layer_types", get, set};
}

HfKey layer_types_key(bool always) {
  return local_layers_key({"sliding_attention", &ModelConfig::window_size, "window"}, always);
}

HfKey same_layer_types_key() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    const std::string kind = c.window_size > 0 ? "sliding_attention" : "full_attention";
    if (!value.json().is_array()) value.refuse_damaged(kind + " for every layer");
    for (const HfJson& got : value.json()) {
      if (got != kind) value.refuse(kind + " for every layer: the class does not read this list");
    }
  };
  return {"layer_types", {}, set};
}

HfKey rotary_interval_key() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.integer() < 1) value.refuse_damaged("1 or more");
    c.rope_layers = {.skip_freq = value.integer()};
  };
  return {"no_rope_layer_interval", {}, set, false, 4};
}

HfKey rotary_layers_key() {
  const auto get = [](const ModelConfig& c) {
    HfJson layers = HfJson::array();
    for (int64_t layer = 0; layer < c.num_layers; ++layer) layers.push_back(c.has_rope(layer) ? 1 : 0);
    return layers;
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    const char* want = "null, or 0 or 1 for every layer";
    if (!value.json().is_array() || static_cast<int64_t>(value.json().size()) < c.num_layers)
      value.refuse_damaged(want);
    std::vector<bool> layers;
    for (const HfJson& has : value.json()) {
      if (has != 0 && has != 1) value.refuse_damaged(want);
      if (static_cast<int64_t>(layers.size()) < c.num_layers) layers.push_back(has == 1);
    }
    c.rope_layers = layer_pattern_of(layers);
  };
  return {"no_rope_layers", get, set};
}

HfKey expert_interval_key(const std::string& key) {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const int64_t step = value.integer();
    if (step < 1 || step > kMostLayers) value.refuse_damaged("1 or more");
    std::vector<bool> pattern(static_cast<size_t>(step), false);
    pattern.back() = true;
    if (step > 1) c.moe.layers = {.pattern = pattern};
  };
  return {key, {}, set, false, 1};
}

std::vector<bool> layers_of_interval(const ModelConfig& c) {
  std::vector<bool> has;
  for (int64_t layer = 0; layer < c.num_layers; ++layer) has.push_back(c.moe.layers.has(layer));
  return has;
}

std::vector<bool> listed_layers(const ModelConfig& c, const HfValue& list) {
  std::vector<bool> listed(static_cast<size_t>(c.num_layers), false);
  if (!list.json().is_array()) list.refuse_damaged("null, or a list of layers");
  for (const HfJson& layer : list.json()) {
    if (!layer.is_number_integer()) list.refuse_damaged("null, or a list of layers");
    const auto index = layer.get<int64_t>();
    if (index >= 0 && index < c.num_layers) listed[static_cast<size_t>(index)] = true;
  }
  return listed;
}

void set_expert_layers(ModelConfig& c, const std::vector<bool>& layers) {
  const auto first = std::ranges::find(layers, true);
  c.moe.first_dense_layers = 0;
  c.moe.layers = {};
  if (first == layers.end()) {
    c.moe = {};
  } else if (std::find(first, layers.end(), false) == layers.end()) {
    c.moe.first_dense_layers = first - layers.begin();
  } else {
    c.moe.layers = {.pattern = layers};
  }
}

HfKey experts_key(const std::string& key) { return hf_count(key, RANKLAB_HF(moe.num_experts)); }

HfKey normalization_key(bool absent) {
  const auto get = [](const ModelConfig& c) { return HfJson(c.moe.normalizes()); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    c.moe.normalize_topk = value.boolean();
    c.moe.normalize_top1 = c.moe.normalize_topk && c.moe.topk == 1;
  };
  return {"norm_topk_prob", get, set, false, absent};
}

HfKey normalized_topk_key(int64_t absent) {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    c.moe.topk = value.integer();
    c.moe.normalize_top1 = c.moe.topk == 1;
  };
  return {"num_experts_per_tok", [](const ModelConfig& c) { return HfJson(c.moe.topk); }, set, false, absent};
}

HfKey expert_width_key(const std::string& key) {
  const auto set = [](ModelConfig& c, const HfValue& value) { c.ffn_hidden_size = value.integer(); };
  return {key, [](const ModelConfig& c) { return HfJson(c.expert_ffn()); }, set, true};
}

HfKey balancing_key(const std::string& key, LoadBalancing kind) {
  const auto get = [](const ModelConfig& c) { return HfJson(c.moe.aux_loss_coeff); };
  const auto set = [kind](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    c.moe.aux_loss_coeff = value.number();
    c.moe.balancing = c.moe.aux_loss_coeff > 0 ? kind : LoadBalancing::kNone;
  };
  return {key, get, set};
}

HfKeys transformer_keys(const char* activation_key, const char* activation) {
  HfKeys keys = {hf_member("vocab_size", RANKLAB_HF(vocab_size)),
                 hf_member("hidden_size", RANKLAB_HF(hidden_size)),
                 hf_member("num_hidden_layers", RANKLAB_HF(num_layers)),
                 hf_member("num_attention_heads", RANKLAB_HF(num_attention_heads)),
                 key_value_heads(),
                 positions_key("max_position_embeddings")};
  if (activation_key != nullptr) keys.push_back(hf_constant(activation_key, activation));
  keys.push_back(hf_member("initializer_range", RANKLAB_HF(init_std), 0.02));
  return keys;
}

HfKey mlp_bias_key() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (!value.boolean()) return;
    if (!c.add_attention_bias) value.refuse("false, or biases of all of attention as well");
    c.add_bias = true;
    c.add_attention_bias = false;
  };
  return {"mlp_bias", [](const ModelConfig& c) { return HfJson(c.add_bias); }, set, false, false};
}

HfKeys linear_bias_keys() {
  const auto attention_bias = [](const ModelConfig& c) { return HfJson(c.has_attention_out_bias()); };
  return {{"attention_bias", attention_bias,
           [](ModelConfig& c, const HfValue& value) { value.into(c.add_attention_bias); }, false, false},
          mlp_bias_key()};
}

HfKey token_key(const std::string& key, int64_t ModelConfig::*member) {
  const auto get = [member](const ModelConfig& c) { return c.*member >= 0 ? HfJson(c.*member) : HfJson(); };
  const auto set = [member](ModelConfig& c, const HfValue& value) {
    c.*member = value.is_null() ? -1 : std::max<int64_t>(value.integer(), -1);
  };
  return {key, get, set};
}

HfKey pad_token_key(HfJson none) {
  HfKey key = token_key("pad_token_id", &ModelConfig::hf_pad_token);
  key.get = [none](const ModelConfig& c) { return c.hf_pad_token >= 0 ? HfJson(c.hf_pad_token) : none; };
  return key;
}

HfKeys ending_keys(bool tied) {
  return {hf_member("tie_word_embeddings", RANKLAB_HF(tie_embeddings), tied),
          token_key("bos_token_id", &ModelConfig::hf_bos_token), end_tokens_key(), pad_token_key(not_written()),
          hf_note("use_cache", true)};
}

HfKey parallel_residual_key(ResidualForm form, bool absent) {
  const auto get = [form](const ModelConfig& c) { return HfJson(c.residual_form == form); };
  const auto set = [form](ModelConfig& c, const HfValue& value) {
    c.residual_form = value.boolean() ? form : ResidualForm::kSequential;
  };
  return {"use_parallel_residual", get, set, false, absent};
}

}  // namespace ranklab
