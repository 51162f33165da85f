// Qwen3_5MoeForCausalLM (Qwen3.5 with experts, the text model; huggingface.co/Qwen/Qwen3.5-35B-A3B): Qwen3-Next's
// layers, all with experts. There, the parts of linear attention's projection are separate matrices, and all experts of
// a layer are one tensor. A model is written as this class if its settings name it, and otherwise as
// Qwen3NextForCausalLM.

#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen.h"
#include "core/checkpoint/hf/families/qwen/qwen_hybrid.h"

namespace ranklab {
namespace {

constexpr const char* kQwen35Moe = "Qwen3_5MoeForCausalLM";

HfKeys qwen3_5_moe_keys() {
  HfKeys keys = qwen_hybrid_keys();
  std::erase_if(keys, [](const HfKey& key) { return key.key == "intermediate_size"; });  // no layer has a dense MLP
  return together({keys,
                   {qwen_experts_key(), normalized_topk_key(8), expert_width_key("moe_intermediate_size"),
                    hf_count("shared_expert_intermediate_size", RANKLAB_HF(moe.shared_ffn_hidden_size)),
                    balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss)},
                   ending_keys(false)});
}

void check_qwen3_5_moe(const HfRefusal& r, const ModelConfig& c) {
  check_qwen_hybrid(r, c);
  check_softmax_experts(r, c);
  MoeConfig routed = c.moe;
  routed.shared_ffn_hidden_size = 0;
  check_routed_experts_alone(r, routed);
  r.require(c.moe.shared_ffn_hidden_size > 0, "--moe-shared-expert-intermediate-size", "0", "1 or more");
  r.require(c.moe.shared_gate, "--moe-shared-expert-gate", "off", "on");
}

}  // namespace

HfFamily qwen3_5_moe_family() {
  ModelConfig model = qwen_hybrid_model();
  model.moe.shared_gate = true;
  model.hf_architecture = kQwen35Moe;
  return {.architecture = kQwen35Moe,
          .model_type = "qwen3_5_moe_text",
          .layer_rules =
              together({qwen_hybrid_rules(),
                        separate_projection_rules(),
                        {{"mlp.router", {"mlp.gate"}},
                         {"mlp.experts.*.gate_up", {"mlp.experts.gate_up_proj"}, HfLayout::kSame, HfNaming::kBare},
                         {"mlp.experts.*.down", {"mlp.experts.down_proj"}, HfLayout::kSame, HfNaming::kBare},
                         {"mlp.shared_gate", {"mlp.shared_expert_gate"}}},
                        shared_expert_rules("mlp.shared_expert")}),
          .other_layer_rules = expert_rules(),  // as transformers 5 writes a model that it did not read
          .model = model,
          .keys = qwen3_5_moe_keys(),
          .passed_over = "mtp.",
          .has_form = [](const ModelConfig& c) { return c.moe.enabled() && c.hf_architecture == kQwen35Moe; },
          .check = check_qwen3_5_moe};
}

}  // namespace ranklab
