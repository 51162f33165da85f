// MixtralForCausalLM (arXiv 2401.04088): Llama's layers with softmax-routed experts, whose weights are normalized.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys mixtral_keys() {
  HfKey experts = experts_key("num_local_experts");
  experts.required = false;
  experts.absent = 8;
  return together({transformer_keys(),
                   {expert_width_key(), head_dim_key(), hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    std::move(experts), normalized_topk_key(2),
                    balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss), window_key()},
                   ending_keys(false)});
}

void check_mixtral(const HfRefusal& r, const ModelConfig& c) {
  check_rotary_layers(r, c);
  check_window_of_all_layers(r, c);
  check_softmax_experts(r, c);
  r.require_off("--add-attention-bias", c.add_attention_bias);
  check_routed_experts_alone(r, c.moe);
}

HfRules experts() {
  return {{"mlp.router", {"block_sparse_moe.gate"}},
          {"mlp.experts.*.gate_up", {"block_sparse_moe.experts.*.w1", "block_sparse_moe.experts.*.w3"}},
          {"mlp.experts.*.down", {"block_sparse_moe.experts.*.w2"}}};
}

}  // namespace

HfFamily mixtral_family() {
  ModelConfig model;
  model.rope_theta = 1e6;
  return {.architecture = "MixtralForCausalLM",
          .model_type = "mixtral",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), experts()}),
          .model = model,
          .keys = mixtral_keys(),
          .has_form = [](const ModelConfig& c) { return c.moe.enabled(); },
          .check = check_mixtral};
}

}  // namespace ranklab
