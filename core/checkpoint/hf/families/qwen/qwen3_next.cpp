// Qwen3NextForCausalLM (Qwen3-Next; huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct): linear attention in three of four
// layers; in the others gated softmax attention that rotates a quarter of each head; softmax-routed experts with a
// gated shared expert. There, everything that belongs to a key head of linear attention is stored together.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen.h"
#include "core/checkpoint/hf/families/qwen/qwen_hybrid.h"

namespace ranklab {
namespace {

void check_qwen3_next(const HfRefusal& r, const ModelConfig& c) {
  check_qwen_hybrid(r, c);
  check_softmax_experts(r, c);
  r.require(c.moe.shared_ffn_hidden_size > 0, "--moe-shared-expert-intermediate-size", "0", "1 or more");
  r.require(c.moe.shared_gate, "--moe-shared-expert-gate", "off", "on");
}

}  // namespace

HfFamily qwen3_next_family() {
  ModelConfig model = qwen_hybrid_model();
  model.moe.shared_gate = true;
  return {.architecture = "Qwen3NextForCausalLM",
          .model_type = "qwen3_next",
          .layer_rules = together({qwen_hybrid_rules(),
                                   expert_rules(),
                                   shared_expert_rules("mlp.shared_expert"),
                                   {{"mlp.shared_gate", {"mlp.shared_expert_gate"}},
                                    {.ours = "attention.in_proj",
                                     .theirs = {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_ba"},
                                     .layout = HfLayout::kHeadsTogether,
                                     .parts = {4, 2}}}}),
          .model = model,
          .keys = together({qwen_hybrid_keys(),
                            qwen_expert_keys(true),
                            {hf_count("shared_expert_intermediate_size", RANKLAB_HF(moe.shared_ffn_hidden_size))},
                            ending_keys(false)}),
          .passed_over = "mtp.",
          .has_form =
              [](const ModelConfig& c) { return c.moe.enabled() && (c.linear.enabled() || c.attention_output_gate); },
          .check = check_qwen3_next};
}

}  // namespace ranklab
