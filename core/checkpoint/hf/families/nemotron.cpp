// NemotronForCausalLM (Nemotron-4, arXiv 2402.16819): LayerNorm that multiplies by 1 + its weight, partial rotary
// embeddings, squared ReLU; biases on all linear layers, only in attention, or none.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys nemotron_keys() {
  return together({transformer_keys("hidden_act", "relu2"),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                    head_dim_key(),
                    hf_member("norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    {"partial_rotary_factor", [](const ModelConfig& c) { return HfJson(c.rotary_percent); },
                     [](ModelConfig&, const HfValue&) {}}},
                   linear_bias_keys(),
                   ending_keys(false)});
}

void check_nemotron(const HfRefusal& r, const ModelConfig& c) {
  check_rotary_positions(r, c);
  check_sequential(r, c);
  check_norms_before(r, c);
  check_plain_scales(r, c);
  r.require(c.norm == NormKind::kLayerNorm, "--normalization", "RMSNorm", "LayerNorm");
  r.require(c.norm_1p, "--apply-layernorm-1p", "off", "on");
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
}

}  // namespace

HfFamily nemotron_family() {
  ModelConfig model;
  model.norm = NormKind::kLayerNorm;
  model.norm_1p = true;
  model.activation = ActivationKind::kSquaredRelu;
  model.rotary_percent = 0.5;
  return {.architecture = "NemotronForCausalLM",
          .model_type = "nemotron",
          .layer_rules = together({llama_norm_rules(),
                                   llama_attention_rules(),
                                   {{"mlp.up", {"mlp.up_proj"}}, {"mlp.down", {"mlp.down_proj"}}}}),
          .model = model,
          .keys = nemotron_keys(),
          .has_form = [](const ModelConfig& c) { return c.activation == ActivationKind::kSquaredRelu; },
          .check = check_nemotron};
}

}  // namespace ranklab
