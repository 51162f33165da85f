#include "core/checkpoint/hf/families/gemma.h"

#include <cmath>
#include <utility>

namespace ranklab {
namespace {

// Must follow the head width. The classes expect an integer if the value is integral.
HfKey score_divisor() {
  const auto get = [](const ModelConfig& c) {
    const double divisor = c.query_pre_attn_scalar;
    if (divisor == 0) return HfJson(c.head_dim());
    return divisor == std::floor(divisor) && divisor < 0x1p52 ? HfJson(static_cast<int64_t>(divisor)) : HfJson(divisor);
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (!(value.number() > 0)) value.refuse_damaged("a number above 0");
    const bool follows = c.num_attention_heads > 0 && value.number() == static_cast<double>(c.head_dim());
    c.query_pre_attn_scalar = follows ? 0 : value.number();
  };
  return {"query_pre_attn_scalar", get, set, false, 256};
}

// Bidirectional attention is refused; false and null both mean that it is off.
HfKey no_bidirectional_attention() {
  const auto set = [](ModelConfig&, const HfValue& value) {
    if (!value.is_null() && value.json() != false) value.refuse("false");
  };
  return {"use_bidirectional_attention", {}, set};
}

}  // namespace

ModelConfig gemma_model() {
  ModelConfig model;
  model.norm_placement = NormPlacement::kBoth;
  model.norm_1p = true;
  model.activation = ActivationKind::kGeGlu;
  model.scale_embeddings = true;
  return model;
}

HfKey softcapping_key(const std::string& key, double ModelConfig::*member, HfJson absent) {
  const auto get = [member](const ModelConfig& c) { return c.*member > 0 ? HfJson(c.*member) : HfJson(); };
  const auto set = [member](ModelConfig& c, const HfValue& value) {
    c.*member = value.is_null() ? 0 : value.number();
    if (!value.is_null() && !(c.*member > 0)) value.refuse_damaged("null, or a number above 0");
  };
  return {key, get, set, false, std::move(absent)};
}

HfKeys gemma_keys() {
  return together({transformer_keys("hidden_activation", "gelu_pytorch_tanh"),
                   {hf_unused("hidden_act"),  // not read by the classes
                    hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(256), score_divisor(),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                    hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false), no_bidirectional_attention(),
                    pad_token_key(0)}});
}

HfRules gemma_norm_rules() {
  return {{"attention_norm", {"input_layernorm"}},
          {"attention_post_norm", {"post_attention_layernorm"}},
          {"mlp_norm", {"pre_feedforward_layernorm"}},
          {"mlp_post_norm", {"post_feedforward_layernorm"}}};
}

void check_gemma(const HfRefusal& r, const ModelConfig& c) {
  check_rotary_positions(r, c);
  check_sequential(r, c);
  r.require_number("--rotary-percent", c.rotary_percent, 1);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.norm_1p, "--apply-layernorm-1p", "off", "on");
  r.require(c.activation == ActivationKind::kGeGlu, "--activation", name(c.activation), "geglu");
  r.require(c.scale_embeddings, "--scale-embeddings", "off", "on");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
}

}  // namespace ranklab
