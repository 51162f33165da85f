// DeepseekV3ForCausalLM (arXiv 2412.19437), with the names of the published weights, which the classes of transformers
// read: latent attention, YaRN, sigmoid-routed experts in groups, dense first layers, and MTP modules stored as layers
// after the last one.
#include "core/base/text.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/sigmoid_experts.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rope.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfRules attention_rules() {
  return {{"attention.q_down", {"self_attn.q_a_proj"}},
          {"attention.q_norm", {"self_attn.q_a_layernorm"}},
          {"attention.q_up", {"self_attn.q_b_proj"}, HfLayout::kNeighboursPerHead},
          {"attention.q", {"self_attn.q_proj"}, HfLayout::kNeighboursPerHead},
          {"attention.kv_down", {"self_attn.kv_a_proj_with_mqa"}, HfLayout::kNeighboursAtEnd},
          {"attention.kv_norm", {"self_attn.kv_a_layernorm"}},
          {"attention.kv_up", {"self_attn.kv_b_proj"}},
          {"attention.out", {"self_attn.o_proj"}}};
}

HfKeys router_keys() {
  HfKeys keys = sigmoid_router_keys(2.5);
  append(keys, {hf_constant("scoring_func", "sigmoid"), hf_constant("topk_method", "noaux_tc"),
                hf_constant("moe_layer_freq", 1), balancing_key("aux_loss_alpha", LoadBalancing::kSeqAuxLoss),
                hf_note("seq_aux", true)});
  return keys;
}

HfKeys deepseek_v3_keys() {
  HfKeys keys = transformer_keys();
  const auto q_lora = [](const ModelConfig& c) { return c.mla.q_lora_rank > 0 ? HfJson(c.mla.q_lora_rank) : HfJson(); };
  const auto set_q_lora = [](ModelConfig& c, const HfValue& value) {
    c.mla.q_lora_rank = value.is_null() ? 0 : value.integer();
  };
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false),
                {"q_lora_rank", q_lora, set_q_lora},
                hf_member("kv_lora_rank", RANKLAB_HF(mla.kv_lora_rank)),
                hf_member("qk_nope_head_dim", RANKLAB_HF(mla.qk_head_dim)),
                hf_member("qk_rope_head_dim", RANKLAB_HF(mla.qk_pos_emb_head_dim)),
                hf_member("v_head_dim", RANKLAB_HF(mla.v_head_dim)),
                hf_member("rope_interleave", RANKLAB_HF(hf_rope_interleave), true)});
  append(keys, router_keys());
  append(keys, {hf_member("num_nextn_predict_layers", RANKLAB_HF(mtp_num_layers), 0), first_dense_layers_key(3)});
  append(keys, ending_keys(false));
  return keys;
}

void check_deepseek_v3(const HfRefusal& r, const ModelConfig& c) {
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
  check_sigmoid_experts(r, c);
}

}  // namespace

HfFamily deepseek_v3_family() {
  return {.architecture = "DeepseekV3ForCausalLM",
          .model_type = "deepseek_v3",
          .other_model_type = "kimi_k2",
          .layer_prefix = "model.layers.",
          .rules = llama_model_rules(),
          .layer_rules = together({llama_norm_rules(), attention_rules(), llama_mlp_rules(), expert_rules(),
                                   shared_expert_rules("mlp.shared_experts"), prediction_rules()}),
          .keys = deepseek_v3_keys(),
          .balancing_bias = "mlp.gate.e_score_correction_bias",
          .has_form = [](const ModelConfig& c) { return c.mla.enabled(); },
          .check = check_deepseek_v3};
}

}  // namespace ranklab
