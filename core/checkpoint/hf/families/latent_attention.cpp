#include "core/checkpoint/hf/families/latent_attention.h"

#include "core/base/text.h"
#include "core/checkpoint/hf/rope.h"

namespace ranklab {

HfRules latent_attention_rules() {
  return {{"attention.q_down", {"self_attn.q_a_proj"}},
          {"attention.q_norm", {"self_attn.q_a_layernorm"}},
          {"attention.q_up", {"self_attn.q_b_proj"}, HfLayout::kNeighboursPerHead},
          {"attention.q", {"self_attn.q_proj"}, HfLayout::kNeighboursPerHead},
          {"attention.kv_down", {"self_attn.kv_a_proj_with_mqa"}, HfLayout::kNeighboursAtEnd},
          {"attention.kv_norm", {"self_attn.kv_a_layernorm"}},
          {"attention.kv_up", {"self_attn.kv_b_proj"}},
          {"attention.out", {"self_attn.o_proj"}}};
}

HfKeys latent_attention_keys() {
  const auto q_lora = [](const ModelConfig& c) { return c.mla.q_lora_rank > 0 ? HfJson(c.mla.q_lora_rank) : HfJson(); };
  const auto set_q_lora = [](ModelConfig& c, const HfValue& value) {
    c.mla.q_lora_rank = value.is_null() ? 0 : value.integer();
  };
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                    hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false),
                    {"q_lora_rank", q_lora, set_q_lora},
                    hf_member("kv_lora_rank", RANKLAB_HF(mla.kv_lora_rank)),
                    hf_member("qk_nope_head_dim", RANKLAB_HF(mla.qk_head_dim)),
                    hf_member("qk_rope_head_dim", RANKLAB_HF(mla.qk_pos_emb_head_dim)),
                    hf_member("v_head_dim", RANKLAB_HF(mla.v_head_dim))}});
}

void check_latent_attention(const HfRefusal& r, const ModelConfig& c) {
  constexpr double kInnerEpsilon = 1e-6;
  check_norms_before(r, c);
  check_no_gemma(r, c);
  check_sequential(r, c);
  r.require(c.norm_epsilon == kInnerEpsilon, "--norm-epsilon", strprintf("%g", c.norm_epsilon),
            "1e-6: that of the norms inside latent attention cannot be set there");
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require(!c.add_attention_bias || c.mla.q_lora_rank > 0, "--q-lora-rank", "0",
            "1 and more: queries that are not compressed have no bias there");
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.activation == ActivationKind::kSwiGlu, "--activation", name(c.activation), "swiglu");
  r.require(c.position == PositionKind::kRope, "--position-embedding-type", name(c.position), "rope");
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  check_hf_rope(r, c);
  r.require(c.rope_scaling.kind != RopeScalingKind::kLongRope, "--rope-scaling-type", "longrope", "another");
}

}  // namespace ranklab
