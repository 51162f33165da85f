// Qwen3ForCausalLM (arXiv 2505.09388): Llama with RMSNorms of each head's query and key, and with heads of any width.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/qwen.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys qwen3_keys() {
  HfKeys keys = qwen_layer_keys(128);
  append(keys, {hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false)});
  append(keys, qwen_window_keys());
  append(keys, ending_keys(false));
  return keys;
}

}  // namespace

HfFamily qwen3_family() {
  ModelConfig model;
  model.qk_norm = true;
  return {.architecture = "Qwen3ForCausalLM",
          .model_type = "qwen3",
          .layer_prefix = "model.layers.",
          .rules = llama_model_rules(),
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), head_norm_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = qwen3_keys(),
          .has_form = [](const ModelConfig& c) { return c.qk_norm; },
          .check = [](const HfRefusal& r, const ModelConfig& c) { check_qwen_layers(r, c, false); }};
}

}  // namespace ranklab
