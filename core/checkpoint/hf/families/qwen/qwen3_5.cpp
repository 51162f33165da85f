// Qwen3_5ForCausalLM (Qwen3.5, the text model; huggingface.co/Qwen/Qwen3.5-9B): Qwen3-Next's layers without experts.
// There, queries, keys and values, the output's gate and both gates of the recurrence are separate matrices.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen_hybrid.h"

namespace ranklab {
HfFamily qwen3_5_family() {
  return {.architecture = "Qwen3_5ForCausalLM",
          .model_type = "qwen3_5_text",
          .layer_rules = together({qwen_hybrid_rules(), separate_projection_rules()}),
          .model = qwen_hybrid_model(),
          .keys = together({qwen_hybrid_keys(), ending_keys(false)}),
          .passed_over = "mtp.",
          .has_form = [](const ModelConfig& c) { return c.linear.enabled() || c.attention_output_gate; },
          .check = check_qwen_hybrid};
}

}  // namespace ranklab
