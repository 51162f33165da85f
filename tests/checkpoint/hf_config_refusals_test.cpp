// Invalid configurations, and those that need a feature ranklab lacks, are rejected; the error names the cause.
#include "core/checkpoint/hf/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// The message of a configuration in which one key has another value (removed when the value is discarded).
std::string refused(const ModelConfig& config, const std::string& key, const Json& value) {
  Json file = Json::parse(text_of(config));
  if (value.is_discarded()) {
    file.erase(key);
  } else {
    file[key] = value;
  }
  return message_of([&] { read_hf_config(file.dump(), "folder/config.json"); });
}

struct Refused {
  ModelConfig config;
  std::string key;
  Json value;
  std::string words;
};
void expect_refused(const std::vector<Refused>& cases) {
  for (const auto& [config, key, value, words] : cases)
    EXPECT_THAT(refused(config, key, value), AllOf(HasSubstr("folder/config.json"), HasSubstr(words))) << key;
}

TEST(HfConfig, WhatRanklabHasNotIsRefusedByItsName) {
  const Json gone(Json::value_t::discarded);
  const ModelConfig llama = tiny_llama(), deepseek = tiny_deepseek(), mixtral = tiny_mixtral(), gpt2 = tiny_gpt2(),
                    mistral = tiny_mistral();
  ModelConfig latent = tiny_latent();
  latent.hidden_size = 8;
  latent.mtp_num_layers = 0;
  expect_refused({
      {llama, "hidden_act", "gelu", "'hidden_act'"},
      {llama, "hidden_size", "8", "'hidden_size'"},
      {llama, "hidden_size", gone, "'hidden_size'"},
      {llama, "hidden_size", 1.5, "whole number"},
      {llama, "hidden_size", 18446744073709551615ULL, "whole number"},
      {llama, "num_hidden_layers", -1, "--num-layers"},
      {llama, "num_key_value_heads", 3, "--num-query-groups"},
      {llama, "head_dim", 0, "'head_dim'"},
      {llama, "head_dim", -4, "'head_dim'"},
      {llama, "head_dim", 3, "--kv-channels"},
      {llama, "mlp_bias", true, "'mlp_bias'"},
      {llama, "tie_word_embeddings", 1, "true or false"},
      {llama, "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, "'rope_scaling.low_freq_factor'"},
      {llama, "rope_scaling", {{"rope_type", "mrope"}, {"factor", 8.0}}, "longrope or yarn"},
      {llama, "rope_scaling", {{"rope_type", "longrope"}}, "'rope_scaling.short_factor'"},
      {llama, "rope_scaling", {{"rope_type", "linear"}}, "'rope_scaling.factor'"},
      {llama, "rope_scaling", {{"rope_type", "linear"}, {"factor", 0.5}}, "--rope-scaling-factor"},
      {llama, "rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"beta_fast", 3}}, "'rope_scaling.beta_fast'"},
      {llama, "rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}, "--rope-scaling-type dynamic"},
      {llama, "rope_scaling", {{"type", "yarn"}, {"factor", 1.03}}, "--rotary-scaling-factor"},
      {mistral, "sliding_window", 0, "'sliding_window'"},
      {llama, "rope_scaling", 3, "'rope_scaling'"},
      {llama, "partial_rotary_factor", 0.5, "--rotary-percent"},
      {llama, "partial_rotary_factor", 0.0, "'partial_rotary_factor'"},
      {deepseek, "partial_rotary_factor", 0.5, "'partial_rotary_factor'"},
      {tiny_qwen3_bias(), "partial_rotary_factor", 0.4, "--rotary-percent"},
      {tiny_stablelm(), "use_parallel_residual", 1, "'use_parallel_residual'"},
      {tiny_stablelm(), "qk_layernorm", true, "'qk_layernorm'"},
      {tiny_nemotron(), "hidden_act", "silu", "'hidden_act'"},
      {tiny_smollm3(), "no_rope_layers", {1}, "'no_rope_layers'"},
      {tiny_smollm3(), "no_rope_layers", {1, 2}, "'no_rope_layers'"},
      {tiny_smollm3(), "no_rope_layer_interval", 0, "'no_rope_layer_interval'"},
      {tiny_partly(), "sliding_window", "2047", "'sliding_window'"},
      {tiny_partly(), "rope_scaling", {{"type", "linear"}, {"factor", 2}}, "stretched"},
      {llama, "quantization_config", {{"quant_method", "gptq"}}, "'quantization_config.quant_method'"},
      {llama, "quantization_config", "fp8", "'quantization_config'"},
      {llama, "architectures", {"MambaForCausalLM"}, "MambaForCausalLM"},
      {llama, "architectures", Json::array(), "'architectures'"},
      {llama, "model_type", "gemma", "'model_type'"},
      {llama, "model_type", "mistral", "want 'llama', that of LlamaForCausalLM"},
      {tiny_gemma3(), "model_type", "gemma3", "'gemma3_text'"},
      {mixtral, "num_local_experts", 0, "'num_local_experts'"},
      {deepseek, "n_routed_experts", 0, "'n_routed_experts'"},
      {deepseek, "scoring_func", "softmax", "'scoring_func'"},
      {latent, "kv_lora_rank", 0, "not those of DeepseekV3ForCausalLM"},
      {deepseek, "rms_norm_eps", 1e-5, "--norm-epsilon"},
      {deepseek, "n_shared_experts", nullptr, "--moe-shared-expert-intermediate-size"},
      {deepseek, "n_routed_experts", 5, "--moe-router-num-groups"},
      {tiny_glm4_moe(), "first_k_dense_replace", 3, "'first_k_dense_replace'"},
      {gpt2, "activation_function", "relu", "'activation_function'"},
      {gpt2, "scale_attn_by_inverse_layer_idx", true, "'scale_attn_by_inverse_layer_idx'"},
  });
}

TEST(HfConfig, WhatRanklabHasNotOfQwenIsRefusedByItsName) {
  const Json gone(Json::value_t::discarded);
  const ModelConfig qwen2 = tiny_qwen2(), qwen3 = tiny_qwen3(), qwen2_moe = tiny_qwen2_moe(),
                    qwen3_moe = tiny_qwen3_moe();
  expect_refused({
      {tiny_qwen2_window(), "max_window_layers", "1", "'max_window_layers'"},
      {tiny_qwen2_window(), "layer_types", {"sliding_attention"}, "'layer_types'"},
      {qwen2, "layer_types", {"full_attention", "sliding_attention"}, "'layer_types'"},
      {qwen2, "layer_types", "full_attention", "'layer_types'"},
      {qwen2, "rope_scaling", {{"type", "mrope"}, {"mrope_section", {1, 1}}}, "'rope_scaling.type'"},
      {qwen2, "use_mrope", true, "'use_mrope'"},
      {qwen3, "head_dim", 5, "--kv-channels"},
      {qwen2_moe, "decoder_sparse_step", 0, "'decoder_sparse_step'"},
      {qwen2_moe, "num_experts", 0, "'num_experts'"},
      {qwen2_moe, "num_experts", gone, "'num_experts'"},
      {qwen2_moe, "num_experts_per_tok", 4, "--moe-router-topk"},
      {qwen2_moe, "shared_expert_intermediate_size", 0, "'shared_expert_intermediate_size'"},
      {qwen2_moe, "shared_expert_intermediate_size", gone, "'shared_expert_intermediate_size'"},
      {qwen3_moe, "mlp_only_layers", {0, 1}, "'mlp_only_layers'"},
      {qwen3_moe, "mlp_only_layers", {1.5}, "'mlp_only_layers'"},
      {qwen3_moe, "decoder_sparse_step", 3, "'mlp_only_layers'"},
      {qwen3_moe, "mlp_only_layers", 0, "'mlp_only_layers'"},
      {qwen3_moe, "moe_intermediate_size", 0, "'moe_intermediate_size'"},
  });
}

TEST(HfConfig, OfYarnEveryMemberIsKnownOrRefused) {
  const auto refused_with = [](const std::string& key, const Json& value) {
    Json scaling = Json::parse(text_of(tiny_deepseek()))["rope_scaling"];
    scaling[key] = value;
    return refused(tiny_deepseek(), "rope_scaling", scaling);
  };
  EXPECT_THAT(refused_with("attention_factor", -2.0), HasSubstr("attention_factor"));
  EXPECT_EQ(refused_with("attention_factor", 2.0), "");
  EXPECT_EQ(refused_with("truncate", false), "");
  EXPECT_THAT(refused_with("beta_medium", 3), HasSubstr("beta_medium"));
  EXPECT_THAT(refused_with("mscale", 0.0), HasSubstr("--mscale"));
  EXPECT_EQ(refused_with("truncate", true), "");
}

// Keys that transformers reads for every class, and keys of its other classes: a model that sets them is a different
// model.
TEST(HfConfig, KeysThatChangeTheModelAreNotPassedOver) {
  const ModelConfig llama = tiny_llama(), window = tiny_window();
  expect_refused({
      {llama, "is_causal", false, "'is_causal'"},
      {tiny_deepseek(), "is_causal", false, "'is_causal'"},
      {llama, "per_layer_config", {{"0", {{"rms_norm_eps", 5.0}}}}, "'per_layer_config'"},
      {llama, "attention_chunk_size", 8, "'attention_chunk_size'"},
      {llama, "sliding_window", 8, "'sliding_window'"},
      {llama, "no_rope_layers", {1, 0}, "'no_rope_layers'"},
      {llama, "embedding_multiplier", 12.0, "'embedding_multiplier'"},
      {llama, "attention_multiplier", 0.1, "'attention_multiplier'"},
      {llama, "final_logit_softcapping", 30.0, "'final_logit_softcapping'"},
      {llama, "use_qk_norm", true, "'use_qk_norm'"},
      {tiny_olmo2(), "clip_qkv", 8.0, "'clip_qkv'"},
      {llama, "layer_types", {"full_attention", "sliding_attention"}, "'layer_types'"},
      {window, "layer_types", {"sliding_attention", "sliding_attention"}, "'layer_types'"},
      {tiny_qwen2_moe(), "num_local_experts", 7, "'num_local_experts'"},
  });
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"is_causal", true},
                                                                            {"per_layer_config", Json::object()},
                                                                            {"attention_chunk_size", nullptr},
                                                                            {"logit_scale", 1.0},
                                                                            {"layer_types", {"full_attention"}},
                                                                            {"sliding_window", nullptr}}) {
    Json file = Json::parse(text_of(llama));
    file[key] = value;
    EXPECT_THAT(read_hf_config(file.dump(), "config.json").unknown_keys, testing::IsEmpty()) << key;
  }
}

TEST(HfConfig, NoConfigurationAtAll) {
  const auto read = [](const std::string& text) {
    return message_of([&] { read_hf_config(text, "folder/config.json"); });
  };
  EXPECT_THAT(read("{"), HasSubstr("not JSON"));
  EXPECT_THAT(read("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(read("{}"), HasSubstr("architectures"));
  EXPECT_THAT(read(R"({"a": )" + std::string(100000, '[')), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace ranklab
