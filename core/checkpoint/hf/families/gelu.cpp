#include "core/checkpoint/hf/families/gelu.h"

#include <string>

namespace ranklab {

ModelConfig gelu_model() {
  ModelConfig model;
  model.norm = NormKind::kLayerNorm;
  model.activation = ActivationKind::kGelu;
  model.add_bias = true;
  model.residual_form = ResidualForm::kParallel;
  model.rotary_percent = 0.25;
  return model;
}

bool has_gelu_form(const ModelConfig& c) {
  return c.norm == NormKind::kLayerNorm && c.position == PositionKind::kRope && !c.has_gated_mlp();
}

HfKey gelu_key(const char* absent) {
  const auto get = [](const ModelConfig& c) {
    return HfJson(c.activation == ActivationKind::kGeluErf ? "gelu" : "gelu_new");
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const std::string text = value.text();
    const bool is_tanh = text == "gelu_new" || text == "gelu_fast" || text == "gelu_pytorch_tanh";
    if (!is_tanh && text != "gelu") value.refuse("gelu, or gelu_new");
    c.activation = is_tanh ? ActivationKind::kGelu : ActivationKind::kGeluErf;
  };
  return {"hidden_act", get, set, false, absent};
}

void check_gelu_layers(const HfRefusal& r, const ModelConfig& c) {
  check_rotary_positions(r, c);
  check_norms_before(r, c);
  check_no_gemma(r, c);
  r.require(c.add_bias, "--add-bias-linear", "off", "on");
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require(c.query_width() == c.hidden_size, "--kv-channels", std::to_string(c.kv_channels),
            "0: --hidden-size / --num-attention-heads");
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
}

}  // namespace ranklab
