// Qwen3MoeForCausalLM (arXiv 2505.09388): Qwen3's attention with softmax-routed experts, without a shared expert.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys qwen3_moe_keys() {
  return together({qwen_layer_keys({}),
                   {hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false)},
                   qwen3_moe_window_keys(),
                   qwen_expert_keys(),
                   ending_keys(false)});
}

void check_qwen3_moe(const HfRefusal& r, const ModelConfig& c) {
  check_qwen_layers(r, c, false);
  check_softmax_experts(r, c);
  check_window_of_all_layers(r, c);
  r.require_number("--moe-shared-expert-intermediate-size", static_cast<double>(c.moe.shared_ffn_hidden_size), 0);
  r.require_off("--moe-shared-expert-gate", c.moe.shared_gate);
}

}  // namespace

HfFamily qwen3_moe_family() {
  ModelConfig model;
  model.qk_norm = true;
  return {.architecture = "Qwen3MoeForCausalLM",
          .model_type = "qwen3_moe",
          .layer_rules = together(
              {llama_norm_rules(), llama_attention_rules(), head_norm_rules(), llama_mlp_rules(), expert_rules()}),
          .model = model,
          .keys = qwen3_moe_keys(),
          .has_form = [](const ModelConfig& c) { return c.moe.enabled() && c.qk_norm; },
          .check = check_qwen3_moe};
}

}  // namespace ranklab
