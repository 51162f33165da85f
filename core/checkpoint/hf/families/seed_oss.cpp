// SeedOssForCausalLM (Seed-OSS; huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct): Llama's layers with biases of
// queries, keys and values, of all of attention, of all linear layers, or none. Other classes compute the same, so a
// model is written as this class only if its settings name it (--hf-architecture), as they do after import.
#include <utility>

#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

constexpr const char* kSeedOss = "SeedOssForCausalLM";

// "attention_bias" is read before it.
HfKey attention_out_bias() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (!value.boolean()) return;
    if (!c.add_qkv_bias) value.refuse("false, or attention_bias as well");
    c.add_qkv_bias = false;
    c.add_attention_bias = true;
  };
  return {"attention_out_bias", [](const ModelConfig& c) { return HfJson(c.has_attention_out_bias()); }, set, false,
          false};
}

HfKeys seed_oss_keys() {
  HfKey attention_bias = hf_member("attention_bias", RANKLAB_HF(add_qkv_bias), true);
  attention_bias.get = [](const ModelConfig& c) { return HfJson(c.has_qkv_bias()); };
  return together(
      {transformer_keys(),
       {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(128),
        hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6), std::move(attention_bias), attention_out_bias(),
        mlp_bias_key(), hf_note("attention_dropout", 0.0), hf_note("residual_dropout", 0.0), pad_token_key(nullptr)},
       ending_keys(false)});
}

}  // namespace

HfFamily seed_oss_family() {
  ModelConfig model;
  model.hf_architecture = kSeedOss;
  return {.architecture = kSeedOss,
          .model_type = "seed_oss",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = seed_oss_keys(),
          .has_form = [](const ModelConfig& c) { return c.hf_architecture == kSeedOss; },
          .check = check_llama_layers};
}

}  // namespace ranklab
