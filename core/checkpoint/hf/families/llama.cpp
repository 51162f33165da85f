// LlamaForCausalLM: RMSNorm, RoPE, SwiGLU; biases on all linear layers, on those of attention alone, or none.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys llama_keys() {
  HfKeys keys = transformer_keys();
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6)});
  append(keys, linear_bias_keys());
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
          .check =
              [](const HfRefusal& r, const ModelConfig& c) {
                check_rotary_layers(r, c);
                r.require_number("--window-size", static_cast<double>(c.window_size), 0);
              }};
}

}  // namespace ranklab
