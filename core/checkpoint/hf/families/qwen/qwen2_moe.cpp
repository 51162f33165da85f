// Qwen2MoeForCausalLM (arXiv 2407.10671), also used by Qwen1.5-MoE: softmax-routed experts and a shared expert whose
// output is scaled by a per-token gate.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys qwen2_moe_keys() {
  return together({qwen_layer_keys({}),
                   {hf_member("qkv_bias", RANKLAB_HF(add_qkv_bias), true)},
                   qwen2_moe_window_keys(),
                   qwen_expert_keys(),
                   {hf_count("shared_expert_intermediate_size", RANKLAB_HF(moe.shared_ffn_hidden_size))},
                   ending_keys(false)});
}

void check_qwen2_moe(const HfRefusal& r, const ModelConfig& c) {
  check_qwen_layers(r, c, true);
  check_softmax_experts(r, c);
  r.require(c.moe.shared_ffn_hidden_size > 0, "--moe-shared-expert-intermediate-size", "0", "1 or more");
  r.require(c.moe.shared_gate, "--moe-shared-expert-gate", "off", "on");
}

}  // namespace

HfFamily qwen2_moe_family() {
  ModelConfig model;
  model.moe.shared_gate = true;
  return {.architecture = "Qwen2MoeForCausalLM",
          .model_type = "qwen2_moe",
          .layer_rules = together({llama_norm_rules(),
                                   llama_attention_rules(),
                                   llama_mlp_rules(),
                                   expert_rules(),
                                   shared_expert_rules("mlp.shared_expert"),
                                   {{"mlp.shared_gate", {"mlp.shared_expert_gate"}}}}),
          .model = model,
          .keys = qwen2_moe_keys(),
          .has_form = [](const ModelConfig& c) { return c.moe.enabled() && (c.moe.shared_gate || c.add_qkv_bias); },
          .check = check_qwen2_moe};
}

}  // namespace ranklab
