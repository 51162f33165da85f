// MistralForCausalLM (arXiv 2310.06825) without a window of attention: what Llama without biases computes. A model is
// written as one where its settings name the class (--hf-architecture), as they do of a model that came as one.
#include "core/checkpoint/hf_families/families.h"
#include "core/checkpoint/hf_keys.h"
#include "core/checkpoint/hf_refusal.h"
#include "core/checkpoint/hf_rules.h"

namespace ranklab {
namespace {

constexpr const char* kMistral = "MistralForCausalLM";

HfKeys mistral_keys() {
  HfKeys keys = transformer_keys();
  HfKey window = hf_constant("sliding_window", nullptr);
  window.absent = 4096;  // the class says so
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6), std::move(window)});
  append(keys, ending_keys(false));
  return keys;
}

}  // namespace

HfFamily mistral_family() {
  ModelConfig model;
  model.hf_architecture = kMistral;
  return {.architecture = kMistral,
          .model_type = "mistral",
          .layer_prefix = "model.layers.",
          .rules = llama_model_rules(),
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = mistral_keys(),
          .has_form = [](const ModelConfig& c) { return c.hf_architecture == kMistral && !c.has_qkv_bias(); },
          .check = check_rotary_layers};
}

}  // namespace ranklab
