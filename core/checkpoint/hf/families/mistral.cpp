// MistralForCausalLM (arXiv 2310.06825): Llama without biases, with or without sliding-window attention. A model
// without a window is written as this class only if its settings name it (--hf-architecture), as they do after import.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

constexpr const char* kMistral = "MistralForCausalLM";

// A model with this key would get Ministral's class from AutoModelForCausalLM.
HfKey no_layer_types() {
  const auto set = [](ModelConfig&, const HfValue& value) {
    if (!value.is_null()) value.refuse("no such key: a window in all layers, or in none");
  };
  return {"layer_types", {}, set};
}

}  // namespace

HfFamily mistral_family() {
  ModelConfig model;
  model.hf_architecture = kMistral;
  return {
      .architecture = kMistral,
      .model_type = "mistral",
      .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
      .model = model,
      .keys = together({transformer_keys(),
                        {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                         hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6), window_key(4096), no_layer_types()},
                        ending_keys(false)}),
      .class_defaults = {{"vocab_size", 32000},
                         {"hidden_size", 4096},
                         {"intermediate_size", 14336},
                         {"num_hidden_layers", 32},
                         {"num_attention_heads", 32},
                         {"num_key_value_heads", 8},
                         {"max_position_embeddings", 131072},
                         {"rms_norm_eps", 1e-6},
                         {"eos_token_id", 2},
                         {"bos_token_id", 1}},
      .has_form =
          [](const ModelConfig& c) {
            return (c.hf_architecture == kMistral || c.window_size > 0) && !c.has_qkv_bias();
          },
      .check =
          [](const HfRefusal& r, const ModelConfig& c) {
            check_rotary_layers(r, c);
            check_window_of_all_layers(r, c);
          }};
}

}  // namespace ranklab
