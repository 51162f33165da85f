// Glm4ForCausalLM (GLM-4-0414; huggingface.co/zai-org/GLM-4-9B-0414): norms before and after attention and MLP; biases
// of queries, keys and values, or none; partial rotary embeddings, whose rotated rows of a head are adjacent; gate and
// up are one matrix, as in ranklab.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys glm4_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(128),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1.5625e-7),
                    hf_member("attention_bias", RANKLAB_HF(add_qkv_bias), true), pad_token_key(nullptr)},
                   ending_keys(false)});
}

void check_glm4(const HfRefusal& r, const ModelConfig& c) {
  check_swiglu_layers(r, c);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-attention-bias", c.add_attention_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
}

}  // namespace

HfFamily glm4_family() {
  ModelConfig model;
  model.norm_placement = NormPlacement::kBoth;
  model.rotary_percent = 0.5;
  return {.architecture = "Glm4ForCausalLM",
          .model_type = "glm4",
          .layer_rules = together({{{"attention_norm", {"input_layernorm"}},
                                    {"attention_post_norm", {"post_self_attn_layernorm"}},
                                    {"mlp_norm", {"post_attention_layernorm"}},
                                    {"mlp_post_norm", {"post_mlp_layernorm"}},
                                    {"mlp.gate_up", {"mlp.gate_up_proj"}},
                                    {"mlp.down", {"mlp.down_proj"}}},
                                   neighbours_attention_rules()}),
          .model = model,
          .keys = glm4_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return c.norm_placement == NormPlacement::kBoth && !c.norm_1p &&
                       c.activation == ActivationKind::kSwiGlu;
              },
          .check = check_glm4};
}

}  // namespace ranklab
