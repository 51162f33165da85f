#include "core/checkpoint/hf/rules.h"

namespace ranklab {

HfRules llama_model_rules() {
  return {{"embedding", {"model.embed_tokens"}}, {"final_norm", {"model.norm"}}, {"head", {"lm_head"}}};
}

HfRules llama_norm_rules() {
  return {{"attention_norm", {"input_layernorm"}}, {"mlp_norm", {"post_attention_layernorm"}}};
}

HfRules llama_attention_rules() {
  return {{"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
          {"attention.out", {"self_attn.o_proj"}}};
}

HfRules neighbours_attention_rules() {
  HfRules rules = llama_attention_rules();
  rules[0].layout = HfLayout::kNeighboursPerHead;
  return rules;
}

HfRules llama_mlp_rules() {
  return {{"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}}, {"mlp.down", {"mlp.down_proj"}}};
}

HfRules head_norm_rules() {
  return {{"attention.q_norm", {"self_attn.q_norm"}}, {"attention.k_norm", {"self_attn.k_norm"}}};
}

HfRules expert_rules() {
  return {{"mlp.router", {"mlp.gate"}},
          {"mlp.experts.*.gate_up", {"mlp.experts.*.gate_proj", "mlp.experts.*.up_proj"}},
          {"mlp.experts.*.down", {"mlp.experts.*.down_proj"}}};
}

HfRules shared_expert_rules(const std::string& module) {
  return {{"mlp.shared.gate_up", {module + ".gate_proj", module + ".up_proj"}},
          {"mlp.shared.down", {module + ".down_proj"}}};
}

}  // namespace ranklab
