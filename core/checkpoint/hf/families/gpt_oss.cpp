// GptOssForCausalLM (gpt-oss, arXiv 2508.10925): a learned sink per head, windows in some layers, biases on all linear
// layers and the router, and experts with a bounded gate. All experts of a layer are one tensor there, with the input
// dimension first and alternating rows of the gate and its other half; published in MXFP4 (mxfp4.h).
#include <utility>

#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

// Without a list, every other layer has the window, beginning with the first.
HfKey alternating_windows() {
  HfKey key = layer_types_key(true);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (value.is_null() && c.window_size > 0) c.window_layers = {.skip_freq = 2};
    set(c, value);
  };
  return key;
}

// In transformers, training adds the auxiliary loss only if this is on, whatever its coefficient, which is 0.9 in
// published files.
HfKey counts_balance() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    c.moe.balancing = value.boolean() ? LoadBalancing::kAuxLoss : LoadBalancing::kNone;
  };
  return {"output_router_logits", [](const ModelConfig& c) { return HfJson(c.moe.aux_loss_coeff > 0); }, set, false,
          false};
}

HfKey balance() {
  HfKey key = balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (c.moe.balancing != LoadBalancing::kNone) set(c, value);
  };
  return key;
}

HfKeys gpt_oss_keys() {
  HfKey experts = experts_key("num_local_experts");
  experts.other = "num_experts";
  return together({transformer_keys(),
                   {expert_width_key(), head_dim_key(64), hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    std::move(experts), normalized_topk_key(4), window_number_key(128), alternating_windows(),
                    hf_constant("attention_bias", true), hf_constant("swiglu_alpha", 1.702),
                    hf_constant("swiglu_limit", 7.0), counts_balance(), balance(),
                    hf_unused("experts_per_token"),  // published files state these twice
                    hf_unused("initial_context_length")},
                   ending_keys(false)});
}

void check_gpt_oss(const HfRefusal& r, const ModelConfig& c) {
  r.require_number("--rotary-percent", c.rotary_percent, 1);
  check_norms_before(r, c);
  check_rotary_positions(r, c);
  check_sequential(r, c);
  check_no_gemma(r, c);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.activation == ActivationKind::kSwiGluOai, "--activation", name(c.activation), "swigluoai");
  r.require(!c.has_local_rope(), "--rotary-base-local", "a base of its own", "0: as in other layers");
  r.require(c.add_bias, "--add-bias-linear", "off", "on");
  r.require_off("--qk-layernorm", c.qk_norm);
  check_plain_softmax_routing(r, c.moe);
  check_routed_experts_alone(r, c.moe);
}

HfRules gpt_oss_rules() {
  return {{"attention.sinks", {"self_attn.sinks"}, HfLayout::kSame, HfNaming::kBare},
          {"mlp.router", {"mlp.router"}},
          {"mlp.experts.*.gate_up", {"mlp.experts.gate_up_proj"}, HfLayout::kHalvesInTurn, HfNaming::kBare},
          {"mlp.experts.*.down", {"mlp.experts.down_proj"}, HfLayout::kTransposed, HfNaming::kBare}};
}

}  // namespace

HfFamily gpt_oss_family() {
  ModelConfig model;
  model.activation = ActivationKind::kSwiGluOai;
  model.softmax = SoftmaxKind::kLearnable;
  model.add_bias = model.moe.router_bias = true;
  model.rope_theta = 150000;
  model.yarn = {.scaling_factor = 32, .mscale_all_dim = 0, .truncate = false};
  return {.architecture = "GptOssForCausalLM",
          .model_type = "gpt_oss",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), gpt_oss_rules()}),
          .model = model,
          .keys = gpt_oss_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return c.softmax == SoftmaxKind::kLearnable && c.moe.enabled() && !c.mla.enabled();
              },
          .check = check_gpt_oss};
}

}  // namespace ranklab
