#include "core/checkpoint/hf/families/qwen/qwen_hybrid.h"

#include <algorithm>
#include <vector>

#include "core/checkpoint/hf/families/qwen/qwen.h"

namespace ranklab {
namespace {

constexpr const char* kLinear = "linear_attention";

void set_linear_layers(ModelConfig& c, const std::vector<bool>& layers) {
  const bool any = std::ranges::find(layers, true) != layers.end();
  c.linear.kind = any ? LinearAttentionKind::kGatedDeltaNet : LinearAttentionKind::kNone;
  c.linear.layers = any ? layer_pattern_of(layers) : LinearAttentionConfig{}.layers;
}

// For files without a list; read before the list.
HfKey softmax_interval() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const int64_t every = value.integer();
    if (every < 1) value.refuse_damaged("1 or more");
    if (c.num_layers < 1 || c.num_layers > kMostLayers) return;  // validate() refuses it
    std::vector<bool> layers;
    for (int64_t layer = 0; layer < c.num_layers; ++layer) layers.push_back((layer + 1) % every != 0);
    set_linear_layers(c, layers);
  };
  return {"full_attention_interval", {}, set, false, 4};
}

HfKey linear_layers() {
  const auto get = [](const ModelConfig& c) {
    HfJson kinds = HfJson::array();
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      kinds.push_back(c.is_linear(layer) ? kLinear : "full_attention");
    return kinds;
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    const std::vector<bool> layers = layers_of_kind(value, kLinear);
    if (static_cast<int64_t>(layers.size()) != c.num_layers)
      value.refuse_damaged("linear_attention or full_attention for every layer");
    set_linear_layers(c, layers);
  };
  return {"layer_types", get, set};
}

}  // namespace

ModelConfig qwen_hybrid_model() {
  ModelConfig model;
  model.norm_1p = model.qk_norm = model.attention_output_gate = true;
  model.rotary_percent = 0.25;
  model.linear.kind = LinearAttentionKind::kGatedDeltaNet;
  return model;
}

HfKeys qwen_hybrid_keys() {
  return together({qwen_layer_keys(256),
                   {hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false),
                    hf_member("linear_conv_kernel_dim", RANKLAB_HF(linear.conv_kernel), 4),
                    hf_member("linear_key_head_dim", RANKLAB_HF(linear.key_head_dim), 128),
                    hf_member("linear_value_head_dim", RANKLAB_HF(linear.value_head_dim), 128),
                    hf_member("linear_num_key_heads", RANKLAB_HF(linear.num_key_heads), 16),
                    hf_member("linear_num_value_heads", RANKLAB_HF(linear.num_value_heads), 32), softmax_interval(),
                    linear_layers()}});
}

HfRules qwen_hybrid_rules() {
  return together({llama_norm_rules(),
                   head_norm_rules(),
                   llama_mlp_rules(),
                   // Each head's queries and its output gate are stored together.
                   {{.ours = "attention.qkv",
                     .theirs = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                     .layout = HfLayout::kHeadsTogether,
                     .parts = {2, 1, 1}},
                    {"attention.out", {"self_attn.o_proj"}},
                    {"attention.conv", {"linear_attn.conv1d"}},
                    {"attention.a_log", {"linear_attn.A_log"}, HfLayout::kSame, HfNaming::kBare},
                    {"attention.dt_bias", {"linear_attn.dt_bias"}, HfLayout::kSame, HfNaming::kBare},
                    {"attention.out_norm", {"linear_attn.norm"}},
                    {"attention.out_proj", {"linear_attn.out_proj"}}}});
}

HfRules separate_projection_rules() {
  return {
      {.ours = "attention.in_proj",
       .theirs = {"linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.in_proj_b", "linear_attn.in_proj_a"},
       .parts = {3, 1, 1, 1}}};
}

void check_qwen_hybrid(const HfRefusal& r, const ModelConfig& c) {
  r.require(c.norm_1p, "--apply-layernorm-1p", "off", "on");
  ModelConfig plain = c;
  plain.norm_1p = false;
  check_partly_rotary_layers(r, plain);
  r.require(c.qk_norm, "--qk-layernorm", "off", "on");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
}

}  // namespace ranklab
