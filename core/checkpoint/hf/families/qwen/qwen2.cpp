// Qwen2ForCausalLM (arXiv 2407.10671), also used by Qwen2.5: Llama with biases only on queries, keys and values.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
HfFamily qwen2_family() {
  ModelConfig model;
  model.add_qkv_bias = true;
  return {.architecture = "Qwen2ForCausalLM",
          .model_type = "qwen2",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = together({qwen_layer_keys({}), qwen_window_keys(), ending_keys(false)}),
          .has_form = [](const ModelConfig& c) { return c.add_qkv_bias && !c.has_attention_out_bias(); },
          .check = check_rotary_layers};
}

}  // namespace ranklab
