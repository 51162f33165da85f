// LlamaForCausalLM: RMSNorm, RoPE, SwiGLU, biases on all linear layers or none.
#include "core/checkpoint/hf_families/families.h"
#include "core/checkpoint/hf_keys.h"
#include "core/checkpoint/hf_refusal.h"
#include "core/checkpoint/hf_rules.h"

namespace ranklab {
namespace {

HfKeys llama_keys() {
  HfKeys keys = transformer_keys();
  const auto same_bias = [](ModelConfig& c, const HfValue& value) {
    if (value.boolean() != c.add_bias) value.refuse("the same as attention_bias");
  };
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                head_dim_key(),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                hf_member("attention_bias", RANKLAB_HF(add_bias), false),
                {"mlp_bias", [](const ModelConfig& c) { return HfJson(c.add_bias); }, same_bias, false, false}});
  append(keys, ending_keys(false));
  return keys;
}

}  // namespace

HfFamily llama_family() {
  return {.architecture = "LlamaForCausalLM",
          .model_type = "llama",
          .layer_prefix = "model.layers.",
          .rules = llama_model_rules(),
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .keys = llama_keys(),
          .has_form = [](const ModelConfig&) { return true; },
          .check = check_rotary_layers};
}

}  // namespace ranklab
