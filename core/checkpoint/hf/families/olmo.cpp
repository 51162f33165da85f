#include "core/checkpoint/hf/families/olmo.h"

namespace ranklab {

ModelConfig olmo_model() {
  ModelConfig model;
  model.norm_placement = NormPlacement::kBehind;
  model.qk_norm = true;
  model.qk_norm_width = QkNormWidth::kAllHeads;
  return model;
}

HfKeys olmo_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false), pad_token_key(nullptr)}});
}

HfRules olmo_layer_rules() {
  return together(
      {{{"attention_post_norm", {"post_attention_layernorm"}}, {"mlp_post_norm", {"post_feedforward_layernorm"}}},
       llama_attention_rules(),
       head_norm_rules(),
       llama_mlp_rules()});
}

void check_olmo(const HfRefusal& r, const ModelConfig& c) {
  check_swiglu(r, c);
  r.require_number("--rotary-percent", c.rotary_percent, 1);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.qk_norm, "--qk-layernorm", "off", "on");
  r.require(c.qk_norm_width == QkNormWidth::kAllHeads, "--qk-layernorm-width", "head", "all-heads");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
}

}  // namespace ranklab
