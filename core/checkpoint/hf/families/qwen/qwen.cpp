#include "core/checkpoint/hf/families/qwen/qwen.h"

#include <algorithm>
#include <utility>

namespace ranklab {
namespace {

// Whether a layer has the window in a file without a list of layers, given its "max_window_layers".
using HasWindow = bool (*)(int64_t layer, int64_t max_window_layers);

// Writes the first layer that has the window. The list of all layers is read after it. `has_window`: null if the class
// ignores this number.
HfKey first_window_layer(HasWindow has_window) {
  const auto get = [](const ModelConfig& c) {
    int64_t first = 0;
    while (first < c.num_layers && c.window_of_layer(first) == 0) ++first;
    return HfJson(first);
  };
  const auto set = [has_window](ModelConfig& c, const HfValue& value) {
    const int64_t first = value.integer();
    if (c.window_size == 0 || has_window == nullptr || c.num_layers < 1 || c.num_layers > kMostLayers) return;
    for (int64_t layer = 0; layer < c.num_layers; ++layer) c.window_layers.pattern.push_back(has_window(layer, first));
  };
  return {"max_window_layers", get, set, false, 28};
}

// Without a list, "max_window_layers" decides.
HfKey layer_types(bool always) {
  HfKey key = layer_types_key(always);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (!value.is_null()) return set(c, value);
    const std::vector<bool> windows = c.window_layers.pattern;
    if (!windows.empty()) set_window_layers(c, windows);
  };
  return key;
}

HfKeys window_keys(HasWindow has_window, HfKey layers) {
  HfKey images = hf_constant("use_mrope", false);  // position ids for images
  images.get = {};
  return together({switched_window_keys(), {first_window_layer(has_window), std::move(layers), std::move(images)}});
}

HfKey sparse_step() {
  HfKey key = expert_interval_key("decoder_sparse_step");
  key.get = [](const ModelConfig&) { return HfJson(1); };  // the list of layers is always written
  return key;
}

// The layers that keep a dense MLP.
HfKey mlp_only_layers_key() {
  const auto get = [](const ModelConfig& c) {
    HfJson layers = HfJson::array();
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      if (!c.is_moe_layer(layer)) layers.push_back(layer);
    return layers;
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (c.num_layers < 1 || c.num_layers > kMostLayers) return;  // validate() refuses it
    std::vector<bool> has = layers_of_interval(c);
    const std::vector<bool> dense = value.is_null() ? std::vector<bool>(has.size()) : listed_layers(c, value);
    for (size_t layer = 0; layer < has.size(); ++layer) has[layer] = has[layer] && !dense[layer];
    if (std::ranges::find(has, true) == has.end()) value.refuse("a list without one layer at least: it has experts");
    set_expert_layers(c, has);
  };
  return {"mlp_only_layers", get, set};
}

HfKey expert_width() {
  HfKey key = hf_count("moe_intermediate_size", RANKLAB_HF(moe.ffn_hidden_size));
  key.get = [](const ModelConfig& c) { return HfJson(c.expert_ffn()); };
  return key;
}

}  // namespace

HfKeys qwen_layer_keys(HfJson head_dim) {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(std::move(head_dim)),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6)}});
}

HfKeys qwen_window_keys() {
  return window_keys([](int64_t layer, int64_t first) { return layer >= first; }, layer_types(false));
}

// The list is always written, because versions of transformers differ in what a file without it means.
HfKeys qwen2_moe_window_keys() {
  return window_keys([](int64_t layer, int64_t end) { return layer % 2 == 0 && layer < end; }, layer_types(true));
}

HfKeys qwen3_moe_window_keys() { return window_keys(nullptr, same_layer_types_key()); }

HfKey qwen_experts_key() {
  HfKey experts = experts_key("num_experts");
  experts.other = "num_local_experts";  // the name since transformers 5
  return experts;
}

HfKeys qwen_expert_keys(bool normalized) {
  return {qwen_experts_key(),
          hf_member("num_experts_per_tok", RANKLAB_HF(moe.topk)),
          expert_width(),
          normalization_key(normalized),
          balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss),
          sparse_step(),
          mlp_only_layers_key()};
}

void check_qwen_layers(const HfRefusal& r, const ModelConfig& c, bool qkv_bias) {
  check_rotary_layers(r, c);
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off(qkv_bias ? "--add-attention-bias" : "--add-qkv-bias", qkv_bias ? c.add_attention_bias : c.add_qkv_bias);
}

}  // namespace ranklab
