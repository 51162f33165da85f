// Qwen3ForCausalLM (arXiv 2505.09388): Llama with RMSNorms of each head's query and key, and with heads of any width.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen/qwen.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
HfFamily qwen3_family() {
  ModelConfig model;
  model.qk_norm = true;
  return {.architecture = "Qwen3ForCausalLM",
          .model_type = "qwen3",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), head_norm_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = together({qwen_layer_keys(128),
                            {hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false)},
                            qwen_window_keys(),
                            ending_keys(false)}),
          .has_form = [](const ModelConfig& c) { return c.qk_norm; },
          .check = [](const HfRefusal& r, const ModelConfig& c) { check_qwen_layers(r, c, false); }};
}

}  // namespace ranklab
