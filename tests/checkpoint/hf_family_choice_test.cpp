// Which family of Hugging Face a model is written as, and the settings for which there is none.
#include "core/checkpoint/hf/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HfFamily, IsChosenByWhatTheModelComputes) {
  std::vector<std::string> chosen;
  for (const ModelConfig& config : tiny_models()) chosen.push_back(hf_family(config).architecture);
  EXPECT_THAT(chosen,
              ElementsAre("LlamaForCausalLM", "GPT2LMHeadModel", "MixtralForCausalLM", "DeepseekV3ForCausalLM",
                          "DeepseekV3ForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen2MoeForCausalLM",
                          "Qwen3MoeForCausalLM", "LlamaForCausalLM", "LlamaForCausalLM", "LlamaForCausalLM",
                          "MistralForCausalLM", "MixtralForCausalLM", "Qwen3ForCausalLM", "DeepseekV3ForCausalLM",
                          "Phi3ForCausalLM", "StableLmForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM",
                          "Qwen2ForCausalLM", "Olmo2ForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM",
                          "GPTNeoXForCausalLM", "PhiForCausalLM", "Phi3ForCausalLM", "Olmo3ForCausalLM",
                          "SmolLM3ForCausalLM", "SmolLM3ForCausalLM", "NemotronForCausalLM", "GptOssForCausalLM",
                          "GptOssForCausalLM", "Glm4MoeForCausalLM", "Glm4MoeForCausalLM", "Llama4ForCausalLM",
                          "Llama4ForCausalLM", "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM", "Qwen3_5ForCausalLM",
                          "NemotronHForCausalLM", "DeepseekV2ForCausalLM", "Qwen3_5MoeForCausalLM",
                          "SeedOssForCausalLM", "GraniteForCausalLM", "GraniteMoeForCausalLM", "Glm4ForCausalLM",
                          "Ernie4_5ForCausalLM", "Ernie4_5_MoeForCausalLM", "CohereForCausalLM", "Cohere2ForCausalLM"));
  ModelConfig biased = tiny_qwen2();
  biased.add_bias = true;  // among them those of queries, keys and values
  EXPECT_EQ(hf_family(biased).architecture, "LlamaForCausalLM");
  ModelConfig gated = tiny_qwen2_moe();
  gated.add_qkv_bias = false;
  EXPECT_EQ(hf_family(gated).architecture, "Qwen2MoeForCausalLM");
}

TEST(HfFamily, SettingsThatNoFamilyHasAreNamed) {
  EXPECT_THAT(family_refusal(tiny_llama(), [](ModelConfig& c) { c.position = PositionKind::kLearned; }),
              says("LlamaForCausalLM", "--position-embedding-type"));
  EXPECT_THAT(family_refusal(tiny_llama(), [](ModelConfig& c) { c.activation = ActivationKind::kGelu; }),
              says("LlamaForCausalLM", "--activation"));
  EXPECT_THAT(family_refusal(tiny_llama(), [](ModelConfig& c) { c.mtp_num_layers = 1; }),
              says("LlamaForCausalLM", "--mtp-num-layers"));
  const auto repeated = [](ModelConfig& c) { c.mtp_num_layers = 2, c.mtp_use_repeated_layer = true; };
  EXPECT_THAT(family_refusal(tiny_deepseek(), repeated), says("DeepseekV3ForCausalLM", "--mtp-use-repeated-layer"));
  EXPECT_THAT(family_refusal(tiny_gpt2(), [](ModelConfig& c) { c.add_bias = false; }),
              says("GPT2LMHeadModel", "--add-bias-linear"));
  EXPECT_THAT(family_refusal(tiny_gpt2(), [](ModelConfig& c) { c.num_query_groups = 1; }),
              says("GPT2LMHeadModel", "--num-query-groups"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.score = RouterScore::kSigmoid; }),
              says("Glm4MoeForCausalLM", "--moe-shared-expert-intermediate-size"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.normalize_topk = false; }),
              says("MixtralForCausalLM", "--moe-router-norm-topk"));
  for (const ModelConfig& config : {tiny_gpt2(), tiny_stablelm(), tiny_llama3()})
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.window_size = 4; }), HasSubstr("--window-size"));
  for (const ModelConfig& config : {tiny_window(), tiny_partly(), tiny_mixtral()}) {
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.window_size = 4, c.window_layers = {.skip_freq = 2}; }),
                HasSubstr("--window-attn-skip-freq"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.window_size = 4, c.local_rope_theta = 50; }),
                HasSubstr("--rotary-base-local"));
  }
  EXPECT_THAT(family_refusal(tiny_qwen3(), [](ModelConfig& c) { c.rotary_percent = 0.5; }),
              says("Qwen3ForCausalLM", "--rotary-percent"));
  EXPECT_THAT(family_refusal(tiny_partly(), [](ModelConfig& c) { c.add_attention_bias = true; }),
              says("Phi3ForCausalLM", "--add-qkv-bias"));
  EXPECT_THAT(family_refusal(tiny_stablelm(), [](ModelConfig& c) { c.add_bias = true; }),
              says("StableLmForCausalLM", "--add-bias-linear"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.latent_size = 4; }),
              says("MixtralForCausalLM", "--moe-latent-size"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.topk = 1; }),
              says("MixtralForCausalLM", "--moe-router-norm-top1"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.add_attention_bias = true; }),
              says("MixtralForCausalLM", "--add-attention-bias"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.capacity_factor = 1; }),
              says("MixtralForCausalLM", "--moe-expert-capacity-factor"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.first_dense_layers = 1; }),
              says("MixtralForCausalLM", "--first-k-dense-replace"));
  EXPECT_THAT(family_refusal(tiny_gpt2(), [](ModelConfig& c) { c.kv_channels = 6; }),
              says("GPT2LMHeadModel", "--kv-channels"));
  EXPECT_THAT(family_refusal(tiny_gpt2(), [](ModelConfig& c) { c.qk_norm = true; }),
              says("GPT2LMHeadModel", "--qk-layernorm"));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.shared_ffn_hidden_size = 4; }),
              says("MixtralForCausalLM", "--moe-shared-expert-intermediate-size"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.qk_norm = true; }),
              says("DeepseekV3ForCausalLM", "--qk-layernorm"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.moe.group_best = 1; }),
              says("DeepseekV3ForCausalLM", "--moe-router-group-best"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.moe.score = RouterScore::kSoftmax; }),
              says("DeepseekV2ForCausalLM", "--moe-router-norm-topk"));
  const auto refused_v2 = [](const char* setting, auto change) {
    EXPECT_THAT(family_refusal(tiny_deepseek_v2(), change), says("DeepseekV2ForCausalLM", setting));
  };
  refused_v2("--moe-router-group-best", [](ModelConfig& c) { c.moe.num_groups = 2; });
  refused_v2("--moe-router-enable-expert-bias", [](ModelConfig& c) { c.moe.expert_bias = true; });
  refused_v2("--mtp-num-layers", [](ModelConfig& c) { c.mtp_num_layers = 1; });
  refused_v2("--hf-rope-interleave", [](ModelConfig& c) { c.hf_rope_interleave = false; });
  refused_v2("--moe-shared-expert-intermediate-size", [](ModelConfig& c) { c.moe.shared_ffn_hidden_size = 0; });
  refused_v2("--q-lora-rank", [](ModelConfig& c) { c.add_attention_bias = true; });
  const auto refused_35 = [](const char* setting, auto change) {
    EXPECT_THAT(family_refusal(tiny_qwen3_5_moe(), change), says("Qwen3_5MoeForCausalLM", setting));
  };
  refused_35("--moe-layer-freq", [](ModelConfig& c) { c.moe.layers = {.pattern = {false, true}}; });
  refused_35("--moe-router-norm-topk", [](ModelConfig& c) { c.moe.normalize_topk = false; });
  refused_35("--moe-shared-expert-gate", [](ModelConfig& c) { c.moe.shared_gate = false; });
  const auto biased_queries = [](ModelConfig& c) {
    c.add_attention_bias = true;
    c.mla.q_lora_rank = 0;
  };
  EXPECT_THAT(family_refusal(tiny_deepseek(), biased_queries), says("DeepseekV3ForCausalLM", "--q-lora-rank"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.window_size = 8; }),
              says("DeepseekV3ForCausalLM", "--window-size"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.norm = NormKind::kLayerNorm; }),
              says("DeepseekV3ForCausalLM", "--normalization"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.activation = ActivationKind::kGeGlu; }),
              says("DeepseekV3ForCausalLM", "--activation"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.norm_epsilon = 1e-5; }),
              says("DeepseekV3ForCausalLM", "--norm-epsilon"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.yarn.scaling_factor = 1.7; }),
              says("DeepseekV3ForCausalLM", "--rotary-scaling-factor"));
}

TEST(HfFamily, SettingsThatNoQwenHasAreNamed) {
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.add_qkv_bias = true; }),
              says("Qwen2MoeForCausalLM", "--moe-shared-expert-intermediate-size"));
  EXPECT_THAT(family_refusal(tiny_qwen2_moe(), [](ModelConfig& c) { c.moe.shared_gate = false; }),
              says("Qwen2MoeForCausalLM", "--moe-shared-expert-gate"));
  EXPECT_THAT(family_refusal(tiny_qwen2_moe(), [](ModelConfig& c) { c.moe.num_groups = 3; }),
              says("Qwen2MoeForCausalLM", "--moe-router-group-topk"));
  EXPECT_THAT(family_refusal(tiny_qwen2_moe(), [](ModelConfig& c) { c.add_attention_bias = true; }),
              says("Qwen2MoeForCausalLM", "--add-attention-bias"));
  EXPECT_THAT(family_refusal(tiny_qwen3(), [](ModelConfig& c) { c.add_bias = true; }),
              says("Qwen3ForCausalLM", "--add-bias-linear"));
  EXPECT_THAT(family_refusal(tiny_qwen3(), [](ModelConfig& c) { c.add_qkv_bias = true; }),
              says("Qwen3ForCausalLM", "--add-qkv-bias"));
  EXPECT_THAT(family_refusal(tiny_qwen3_moe(), [](ModelConfig& c) { c.moe.shared_gate = true; }),
              says("Qwen3MoeForCausalLM", "--moe-shared-expert-gate"));
  EXPECT_THAT(family_refusal(tiny_qwen3_moe(), [](ModelConfig& c) { c.moe.scaling_factor = 2; }),
              says("Qwen3MoeForCausalLM", "--moe-router-topk-scaling-factor"));
}

}  // namespace
}  // namespace ranklab
