// Models with DeepSeek's experts: DeepSeek-V2 and V2-Lite; GLM-4.5, which rotates only a part of each head; and Kimi
// K2, which uses DeepSeek-V3's class. Their published configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/presets.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::IsEmpty;

// The keys of huggingface.co/zai-org/GLM-4.5-Air (raw/main/config.json).
constexpr const char* kPublished = R"({"architectures": ["Glm4MoeForCausalLM"], "attention_bias": true,
    "attention_dropout": 0.0, "eos_token_id": [151329, 151336, 151338], "first_k_dense_replace": 1, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 10944,
    "max_position_embeddings": 131072, "model_type": "glm4_moe", "moe_intermediate_size": 1408, "n_group": 1,
    "n_routed_experts": 128, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 96,
    "num_experts_per_tok": 8, "num_hidden_layers": 46, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
    "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "rope_theta": 1000000, "routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1,
    "torch_dtype": "bfloat16", "transformers_version": "4.54.0", "use_cache": true, "use_qk_norm": false,
    "vocab_size": 151552})";

TEST(HfGlm4Moe, ReadsThePublishedConfiguration) {
  const HfConfig read = read_hf_config(kPublished, "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  const ModelCounts counts = count_model(read.model, 8);
  EXPECT_NEAR(static_cast<double>(counts.total), 106.8e9, 0.1e9);  // "106B"
  EXPECT_GT(counts.mtp, 0);
  EXPECT_TRUE(read.model.add_qkv_bias);
  EXPECT_FALSE(read.model.qk_norm);
  EXPECT_EQ(read.model.rotary_width(), 64);
  EXPECT_EQ(read.model.moe.score, RouterScore::kSigmoid);
  EXPECT_EQ(read.model.moe.shared_ffn_hidden_size, 1408);
}

// The keys of huggingface.co/deepseek-ai/DeepSeek-V2-Lite (raw/main/config.json).
constexpr const char* kLite = R"({"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "aux_loss_alpha": 0.001, "bos_token_id": 100000, "eos_token_id": 100001,
    "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v2",
    "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
    "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
    "num_key_value_heads": 16, "pretraining_tp": 1, "q_lora_rank": null, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 1.0,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
      "original_max_position_embeddings": 4096, "type": "yarn"}, "scoring_func": "softmax", "seq_aux": true,
    "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy", "torch_dtype": "bfloat16",
    "transformers_version": "4.33.1", "use_cache": true, "v_head_dim": 128, "vocab_size": 102400})";

TEST(HfDeepseekV2, ReadsThePublishedConfiguration) {
  const HfConfig read = read_hf_config(kLite, "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  ModelConfig want = model_preset("deepseek_v2_lite");
  want.seq_length = 163840;
  want.init_std = 0.02;  // of this class; the model was trained from others
  want.hf_bos_token = 100000;
  want.hf_eos_tokens = {100001};
  EXPECT_EQ(text_of(read.model), text_of(want));
}

// The keys of huggingface.co/deepseek-ai/DeepSeek-V2 that differ.
TEST(HfDeepseekV2, ReadsThePublishedConfigurationWithGroups) {
  auto file = nlohmann::ordered_json::parse(kLite);
  file.update({{"hidden_size", 5120},
               {"intermediate_size", 12288},
               {"moe_intermediate_size", 1536},
               {"n_group", 8},
               {"n_routed_experts", 160},
               {"num_attention_heads", 128},
               {"num_hidden_layers", 60},
               {"num_key_value_heads", 128},
               {"q_lora_rank", 1536},
               {"routed_scaling_factor", 16.0},
               {"topk_group", 3},
               {"topk_method", "group_limited_greedy"}});
  file["rope_scaling"]["mscale"] = file["rope_scaling"]["mscale_all_dim"] = 1.0;
  ModelConfig want = model_preset("deepseek_v2");
  want.seq_length = 163840;
  want.init_std = 0.02;
  want.hf_bos_token = 100000;
  want.hf_eos_tokens = {100001};
  EXPECT_EQ(text_of(read_hf_config(file.dump(), "config.json").model), text_of(want));
  // With the other method the groups in a file have no meaning, also where there are none.
  file["topk_method"] = "greedy";
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.moe.num_groups, 1);
  file["n_group"] = file["topk_group"] = nullptr;
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.moe.group_topk, 1);
}

TEST(HfDeepseekV2, WhatRanklabHasNotIsRefusedByItsName) {
  const auto refusal = [](const char* key, const nlohmann::json& value) {
    auto file = nlohmann::ordered_json::parse(kLite);
    file[key] = value;
    return message_of([&] { read_hf_config(file.dump(), "config.json"); });
  };
  EXPECT_THAT(refusal("topk_method", "noaux_tc"), ::testing::HasSubstr("'topk_method'"));
  EXPECT_THAT(refusal("norm_topk_prob", true), ::testing::HasSubstr("'norm_topk_prob'"));
  EXPECT_THAT(refusal("scoring_func", "sigmoid"), ::testing::HasSubstr("'scoring_func'"));
  EXPECT_THAT(refusal("mlp_bias", true), ::testing::HasSubstr("'mlp_bias'"));
}

// The keys of huggingface.co/moonshotai/Kimi-K2-Base (raw/main/config.json), without its quantization. All frequencies
// that turn less than once are stretched: no mixed ones.
TEST(HfKimiK2, ReadsThePublishedConfiguration) {
  const HfConfig read = read_hf_config(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "aux_loss_alpha": 0.001, "bos_token_id": 163584, "eos_token_id": 163585, "ep_size": 1,
    "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02,
    "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 131072, "model_type": "kimi_k2",
    "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1,
    "norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
    "num_key_value_heads": 64, "num_nextn_predict_layers": 0, "pretraining_tp": 1, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 50000.0,
    "routed_scaling_factor": 2.827, "rope_scaling": {"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0,
      "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
    "scoring_func": "sigmoid", "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1,
    "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "transformers_version": "4.48.3", "use_cache": true,
    "v_head_dim": 128, "vocab_size": 163840})",
                                       "config.json");
  EXPECT_NEAR(static_cast<double>(count_model(read.model, 8).total), 1.026e12, 1e9);  // "1T"
  EXPECT_EQ(read.model.yarn.beta_fast, read.model.yarn.beta_slow);
  EXPECT_EQ(read.model.moe.num_groups, 1);
}

// Of a head of 8 whose first 4 elements are rotated, theirs is 0 1 2 3 rotated and 4 5 6 7 not; ours has half of both
// in each half.
TEST(HfGlm4Moe, NormsOfHeadsHaveTheOrderOfTheirHeads) {
  const ModelConfig config = tiny_glm4_moe();
  const MemoryTensors ours = counted_weights(config);
  const std::string path = temporary_path("hf_glm4_moe");
  export_hf(ours, config, path, {.durable = false});
  const HfFolder folder(path);
  const std::vector<float> norm = floats(ours, "weight/layers.0.attention.q_norm.weight"),
                           theirs = floats(folder, "model.layers.0.self_attn.q_norm.weight");
  ASSERT_EQ(norm.size(), 8u);
  const std::vector<size_t> order = {0, 1, 4, 5, 2, 3, 6, 7};
  for (size_t i = 0; i < norm.size(); ++i) EXPECT_EQ(theirs[i], norm[order[i]]) << i;
}

}  // namespace
}  // namespace ranklab
