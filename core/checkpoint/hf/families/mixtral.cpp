// MixtralForCausalLM (arXiv 2401.04088): Llama's layers with softmax-routed experts, whose weights are normalized.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys mixtral_keys() {
  HfKeys keys = transformer_keys();
  const auto expert_ffn = [](const ModelConfig& c) { return HfJson(c.expert_ffn()); };
  const auto all_ffn = [](ModelConfig& c, const HfValue& value) { c.ffn_hidden_size = value.integer(); };
  // The class normalizes the weights for any top-k.
  const auto topk = [](ModelConfig& c, const HfValue& value) {
    c.moe.topk = value.integer();
    c.moe.normalize_top1 = c.moe.topk == 1;
  };
  HfKey experts = experts_key("num_local_experts");
  experts.required = false;
  experts.absent = 8;
  append(keys, {{"intermediate_size", expert_ffn, all_ffn, true},
                head_dim_key(),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                std::move(experts),
                {"num_experts_per_tok", [](const ModelConfig& c) { return HfJson(c.moe.topk); }, topk, false, 2},
                balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss),
                window_key()});
  append(keys, ending_keys(false));
  return keys;
}

void check_mixtral(const HfRefusal& r, const ModelConfig& c) {
  const MoeConfig& m = c.moe;
  check_rotary_layers(r, c);
  check_window_of_all_layers(r, c);
  check_softmax_experts(r, c);
  r.require(m.normalize_topk, "--moe-router-norm-topk", "off", "on");
  r.require(m.normalizes(), "--moe-router-norm-top1 with --moe-router-topk 1", "off", "on");
  r.require_off("--add-attention-bias", c.add_attention_bias);
  r.require_number("--moe-shared-expert-intermediate-size", static_cast<double>(m.shared_ffn_hidden_size), 0);
  r.require_number("--first-k-dense-replace", static_cast<double>(m.first_dense_layers), 0);
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
          .layer_prefix = "model.layers.",
          .rules = llama_model_rules(),
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), experts()}),
          .model = model,
          .keys = mixtral_keys(),
          .has_form = [](const ModelConfig& c) { return c.moe.enabled(); },
          .check = check_mixtral};
}

}  // namespace ranklab
