// Nemotron-H: a published configuration, its newer words for the same, what a file without a key means, and what the
// class cannot express.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/presets.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// huggingface.co/nvidia/Nemotron-H-8B-Base-8K (config.json), with the number that JSON has not.
constexpr const char* kNemotronH8b = R"({"architectures": ["NemotronHForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attention_head_dim": 128, "bos_token_id": 1, "chunk_size": 128, "conv_kernel": 4,
    "eos_token_id": 2, "expand": 2, "hidden_dropout": 0.0, "hidden_size": 4096,
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", "initializer_range": 0.02,
    "intermediate_size": 21504, "layer_norm_epsilon": 1e-05, "mamba_head_dim": 64, "mamba_hidden_act": "silu",
    "mamba_num_heads": 128, "mamba_proj_bias": false, "max_position_embeddings": 8192, "mlp_bias": false,
    "mlp_hidden_act": "relu2", "model_type": "nemotron_h", "n_groups": 8, "num_attention_heads": 32,
    "num_hidden_layers": 52, "num_key_value_heads": 8, "num_logits_to_keep": 1, "pad_token_id": 0,
    "rescale_prenorm_residual": true, "residual_in_fp32": false, "rms_norm_eps": 1e-05, "sliding_window": null,
    "ssm_state_size": 128, "tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_limit": [0.0, Infinity],
    "time_step_max": 0.1, "time_step_min": 0.001, "use_bias": false, "use_cache": true, "use_conv_bias": true,
    "vocab_size": 131072})";

Json nemotron_h_file() {
  std::string text = kNemotronH8b;
  return Json::parse(text.replace(text.find("Infinity"), 8, "null"));
}
ModelConfig read_nemotron_h(const Json& file) { return read_hf_config(file.dump(), "config.json").model; }

TEST(HfNemotronH, ReadsThePublishedConfiguration) {
  ModelConfig want = model_preset("nemotron_h_8b");
  want.hf_bos_token = 1;
  want.hf_eos_tokens = {2};
  want.hf_pad_token = 0;
  const HfConfig got = read_hf_config(kNemotronH8b, "config.json");
  EXPECT_EQ(text_of(got.model), text_of(want));
  EXPECT_TRUE(got.unknown_keys.empty()) << got.unknown_keys[0];
}

TEST(HfNemotronH, LayersMayBeListedByTheirWords) {
  Json file = nemotron_h_file();
  file.erase("hybrid_override_pattern");
  file.erase("num_hidden_layers");
  file["layers_block_type"] = {"mamba", "attention", "linear_attention", "full_attention", "mlp"};
  EXPECT_EQ(read_nemotron_h(file).hybrid_pattern, "M*M*-");
  EXPECT_EQ(read_nemotron_h(file).num_layers, 5);
  file["layers_block_type"] = {"mamba", "moe"};
  file["n_routed_experts"] = 4;
  file["num_experts_per_tok"] = 2;
  file["moe_intermediate_size"] = 64;
  file["moe_shared_expert_intermediate_size"] = 96;
  const ModelConfig experts = read_nemotron_h(file);
  EXPECT_EQ(experts.hybrid_pattern, "ME");
  EXPECT_EQ(experts.moe.num_experts, 4);
  EXPECT_EQ(experts.moe.shared_ffn_hidden_size, 96);
  EXPECT_EQ(experts.moe.score, RouterScore::kSigmoid);
  EXPECT_EQ(experts.moe.latent_size, 0);
  file["moe_latent_size"] = 12;
  EXPECT_EQ(read_nemotron_h(file).moe.latent_size, 12);
}

TEST(HfNemotronH, WhatAFileDoesNotSay) {
  Json file = nemotron_h_file();
  for (const char* key : {"attention_head_dim", "conv_kernel", "layer_norm_epsilon", "mamba_head_dim", "n_groups",
                          "mamba_num_heads", "ssm_state_size", "time_step_min", "use_bias", "use_conv_bias"})
    file.erase(key);
  EXPECT_EQ(text_of(read_nemotron_h(file)), text_of(read_nemotron_h(nemotron_h_file())));
}

TEST(HfNemotronH, WhatRanklabHasNotIsRefusedByItsName) {
  const auto refusal = [](const char* key, const Json& value) {
    Json file = nemotron_h_file();
    file[key] = value;
    return message_of([&] { read_nemotron_h(file); });
  };
  EXPECT_THAT(refusal("hybrid_override_pattern", "M-G*"), HasSubstr("'hybrid_override_pattern'"));
  EXPECT_THAT(refusal("hybrid_override_pattern", ""), HasSubstr("'hybrid_override_pattern'"));
  EXPECT_THAT(refusal("layers_block_type", {"mamba", "sparse"}), HasSubstr("'layers_block_type'"));
  EXPECT_THAT(refusal("use_conv_bias", false), HasSubstr("'use_conv_bias'"));
  EXPECT_THAT(refusal("moe_latent_size", 0), HasSubstr("'moe_latent_size'"));
  EXPECT_THAT(refusal("n_groups", 3), HasSubstr("--mamba-num-groups"));
  EXPECT_THAT(refusal("mlp_hidden_act", "silu"), HasSubstr("'mlp_hidden_act'"));
}

TEST(HfNemotronH, WhatTheClassCannotExpressIsNamed) {
  const auto refused = [](void (*change)(ModelConfig&), const char* setting) {
    EXPECT_THAT(family_refusal(tiny_nemotron_h(), change), AllOf(HasSubstr("NemotronH"), HasSubstr(setting)));
  };
  refused([](ModelConfig& c) { c.position = PositionKind::kRope; }, "--position-embedding-type");
  refused([](ModelConfig& c) { c.activation = ActivationKind::kSwiGlu; }, "--activation");
  refused([](ModelConfig& c) { c.norm = NormKind::kLayerNorm; }, "--normalization");
  refused([](ModelConfig& c) { c.add_bias = true; }, "--add-bias-linear");
  refused([](ModelConfig& c) { c.window_size = 3; }, "--window-size");
  refused([](ModelConfig& c) { c.mtp_num_layers = 1; }, "--mtp-num-layers");
  refused([](ModelConfig& c) { c.moe.shared_ffn_hidden_size = 0; }, "--moe-shared-expert-intermediate-size");
  refused([](ModelConfig& c) { c.moe.score = RouterScore::kSoftmax; }, "--moe-router-score-function");
  refused([](ModelConfig& c) { c.linear.kind = LinearAttentionKind::kGatedDeltaNet; }, "--linear-attention-type");
}

}  // namespace
}  // namespace ranklab
