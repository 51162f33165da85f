// Olmo2ForCausalLM (OLMo 2, arXiv 2501.00656): Llama with norms of what attention and MLP add to the residual stream
// instead of what they see, and RMSNorms of all queries and of all keys of a token.
#include "core/checkpoint/hf_families/families.h"
#include "core/checkpoint/hf_keys.h"
#include "core/checkpoint/hf_refusal.h"
#include "core/checkpoint/hf_rules.h"

namespace ranklab {
namespace {

HfKeys olmo2_keys() {
  HfKeys keys = transformer_keys();
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false)});
  append(keys, ending_keys(false));
  append(keys, {hf_note("pad_token_id", nullptr)});
  return keys;
}

void check_olmo2(const HfRefusal& r, const ModelConfig& c) {
  check_swiglu_layers(r, c);
  r.require_number("--rotary-percent", c.rotary_percent, 1);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.qk_norm, "--qk-layernorm", "off", "on");
  r.require(c.qk_norm_width == QkNormWidth::kAllHeads, "--qk-layernorm-width", "head", "all-heads");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
}

}  // namespace

HfFamily olmo2_family() {
  ModelConfig model;
  model.norm_placement = NormPlacement::kBehind;
  model.qk_norm = true;
  model.qk_norm_width = QkNormWidth::kAllHeads;
  return {.architecture = "Olmo2ForCausalLM",
          .model_type = "olmo2",
          .layer_prefix = "model.layers.",
          .rules = llama_model_rules(),
          .layer_rules = together({{{"attention_post_norm", {"post_attention_layernorm"}},
                                    {"mlp_post_norm", {"post_feedforward_layernorm"}}},
                                   llama_attention_rules(),
                                   head_norm_rules(),
                                   llama_mlp_rules()}),
          .model = model,
          .keys = olmo2_keys(),
          .has_form = [](const ModelConfig& c) { return c.norm_placement == NormPlacement::kBehind; },
          .check = check_olmo2};
}

}  // namespace ranklab
