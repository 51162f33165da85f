// SmolLM3ForCausalLM (SmolLM 3; huggingface.co/HuggingFaceTB/SmolLM3-3B): Llama's layers, some of which have no
// positions (arXiv 2501.18795); some layers, or all, may have a window. A model whose layers all have positions is
// written as this class only if its settings name it (--hf-architecture), as they do after import.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

constexpr const char* kSmolLm3 = "SmolLM3ForCausalLM";

// Without a list, the layers without positions have the window.
HfKey window_layers() {
  HfKey key = layer_types_key(true);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (!value.is_null() || c.window_size == 0 || c.num_layers > kMostLayers) return set(c, value);
    std::vector<bool> windows;
    for (int64_t layer = 0; layer < c.num_layers; ++layer) windows.push_back(!c.has_rope(layer));
    set_window_layers(c, windows);
  };
  return key;
}

HfKeys smollm3_keys() {
  return together(
      {transformer_keys(),
       {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
        hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6), rotary_interval_key(), rotary_layers_key()},
       linear_bias_keys(),
       switched_window_keys(),
       {window_layers(),
        hf_unused("max_window_layers"),  // not read by the class
        pad_token_key(nullptr)},
       ending_keys(true)});
}

void check_smollm3(const HfRefusal& r, const ModelConfig& c) {
  ModelConfig rotary = c;
  rotary.rope_layers = {};
  check_rotary_layers(r, rotary);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
}

}  // namespace

HfFamily smollm3_family() {
  ModelConfig model;
  model.hf_architecture = kSmolLm3;
  model.rope_theta = 2e6;
  return {.architecture = kSmolLm3,
          .model_type = "smollm3",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = smollm3_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return !c.moe.enabled() && (c.hf_architecture == kSmolLm3 || !c.rope_layers.all());
              },
          .check = check_smollm3};
}

}  // namespace ranklab
