// Ernie4_5ForCausalLM (ERNIE 4.5; huggingface.co/baidu/ERNIE-4.5-0.3B-PT): Llama's layers, with biases on all linear
// layers or none; rotated rows of a head are adjacent. LlamaForCausalLM computes the same, so a model is written as
// this class only if its settings name it (--hf-architecture), as they do after import.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

constexpr const char* kErnie = "Ernie4_5ForCausalLM";

void check_ernie4_5(const HfRefusal& r, const ModelConfig& c) {
  check_llama_layers(r, c);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_off("--add-attention-bias", c.add_attention_bias);
}

}  // namespace

HfFamily ernie4_5_family() {
  ModelConfig model;
  model.hf_architecture = kErnie;
  model.rope_theta = 500000;
  return {.architecture = kErnie,
          .model_type = "ernie4_5",
          .layer_rules = together({llama_norm_rules(), neighbours_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = together({transformer_keys(),
                            {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(128),
                             hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                             hf_member("use_bias", RANKLAB_HF(add_bias), false), pad_token_key(nullptr)},
                            ending_keys(true)}),
          .has_form = [](const ModelConfig& c) { return c.hf_architecture == kErnie; },
          .check = check_ernie4_5};
}

}  // namespace ranklab
