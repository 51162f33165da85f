// Seed-OSS, Granite, GLM-4, ERNIE 4.5, Cohere: the sizes that they are published in, and the settings that only their
// families have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/hf/config.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

ModelConfig published(const std::string& text) {
  const HfConfig config = read_hf_config(text, "config.json");
  EXPECT_THAT(config.unknown_keys, IsEmpty());
  return config.model;
}

std::string edited_refusal(const ModelConfig& config, const std::string& key, const Json& value) {
  return message_of([&] { read_edited(config, [&](Json& file) { file[key] = value; }); });
}

// huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct/raw/main/config.json
TEST(HfConfig, ReadsThePublishedSeedOss) {
  const ModelConfig model = published(R"({"architectures": ["SeedOssForCausalLM"], "attention_bias": true,
    "attention_dropout": 0.1, "attention_out_bias": false, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 27648,
    "max_position_embeddings": 524288, "mlp_bias": false, "model_type": "seed_oss", "num_attention_heads": 80,
    "num_hidden_layers": 64, "num_key_value_heads": 8, "residual_dropout": 0.1, "rms_norm_eps": 1e-06,
    "rope_scaling": {"rope_type": "default"}, "rope_theta": 10000000.0, "tie_word_embeddings": false,
    "vocab_size": 155136})");
  EXPECT_EQ(model.parameter_count(), 36151104512);  // "36B"
  EXPECT_TRUE(model.add_qkv_bias);
  EXPECT_FALSE(model.has_attention_out_bias());
  EXPECT_EQ(model.dropout, 0);
}

TEST(HfConfig, OfSeedOssEveryBiasIsReadOrRefused) {
  const auto read = [](bool attention, bool out, bool mlp) {
    return read_edited(tiny_seed_oss(), [=](Json& file) {
      file["attention_bias"] = attention;
      file["attention_out_bias"] = out;
      file["mlp_bias"] = mlp;
    });
  };
  EXPECT_FALSE(read(false, false, false).has_qkv_bias());
  EXPECT_TRUE(read(true, true, false).add_attention_bias);
  EXPECT_TRUE(read(true, true, true).add_bias);
  EXPECT_THAT(message_of([&] { read(false, true, false); }), HasSubstr("'attention_out_bias'"));
  EXPECT_THAT(message_of([&] { read(true, false, true); }), HasSubstr("'mlp_bias'"));
}

// huggingface.co/ibm-granite/granite-3.3-8b-base/raw/main/config.json
TEST(HfConfig, ReadsThePublishedGranite) {
  const ModelConfig model = published(R"({"architectures": ["GraniteForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attention_multiplier": 0.0078125, "bos_token_id": 0, "embedding_multiplier": 12.0,
    "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 12800, "logits_scaling": 16.0, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "rope_theta": 10000000.0, "tie_word_embeddings": true, "vocab_size": 49152})");
  EXPECT_EQ(model.parameter_count(), 8170835968);  // "8B"
  EXPECT_EQ(model.query_pre_attn_scalar, 16384);
  EXPECT_EQ(model.logit_scale, 0.0625);
  EXPECT_EQ(model.embedding_multiplier, 12);
  EXPECT_EQ(model.residual_multiplier, 0.22);
}

// Our settings are inverses of two of the file's numbers; rounding does not add up over exports and imports.
TEST(HfConfig, NumbersOfGraniteReturn) {
  for (double number = 0.013; number < 40; number *= 1.07) {
    const auto with = [&](Json& file) { file["attention_multiplier"] = file["logits_scaling"] = number; };
    const std::string text = text_of(read_edited(tiny_granite(), with));
    EXPECT_DOUBLE_EQ(Json::parse(text)["attention_multiplier"].get<double>(), number);
    EXPECT_DOUBLE_EQ(Json::parse(text)["logits_scaling"].get<double>(), number);
    EXPECT_EQ(text_of(read_hf_config(text, "config.json").model), text);
  }
  for (const double number : {0.0078125, 0.015625, 6.0, 8.0, 12.0, 16.0}) {
    const auto with = [&](Json& file) { file["logits_scaling"] = number; };
    EXPECT_EQ(Json::parse(text_of(read_edited(tiny_granite(), with)))["logits_scaling"].get<double>(), number);
  }
  const auto as_heads = [](Json& file) { file["attention_multiplier"] = 1 / std::sqrt(2.0); };
  EXPECT_EQ(read_edited(tiny_granite(), as_heads).query_pre_attn_scalar, 0);  // the width of a head
  for (const char* key : {"attention_multiplier", "logits_scaling"})
    EXPECT_THAT(edited_refusal(tiny_granite(), key, 0.0), HasSubstr(key));
  EXPECT_THAT(edited_refusal(tiny_granite(), "residual_multiplier", 0.0), HasSubstr("--residual-multiplier"));
  EXPECT_THAT(edited_refusal(tiny_granite(), "embedding_multiplier", -1.0), HasSubstr("--embedding-multiplier"));
}

// huggingface.co/zai-org/GLM-4-9B-0414/raw/main/config.json
TEST(HfConfig, ReadsThePublishedGlm4) {
  const ModelConfig model = published(R"({"architectures": ["Glm4ForCausalLM"], "attention_bias": true,
    "attention_dropout": 0.0, "eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 13696, "max_position_embeddings": 32768,
    "model_type": "glm4", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2,
    "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
    "tie_word_embeddings": false, "vocab_size": 151552})");
  EXPECT_EQ(model.parameter_count(), 9400279040);  // "9B"
  EXPECT_EQ(model.rotary_width(), 64);
}

// huggingface.co/baidu/ERNIE-4.5-0.3B-PT and ERNIE-4.5-21B-A3B-PT
TEST(HfConfig, ReadsThePublishedErnies) {
  const ModelConfig dense = published(R"({"architectures": ["Ernie4_5ForCausalLM"], "bos_token_id": 1,
    "eos_token_id": 2, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072,
    "max_position_embeddings": 131072, "model_type": "ernie4_5", "num_attention_heads": 16, "num_hidden_layers": 18,
    "num_key_value_heads": 2, "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "tie_word_embeddings": true, "use_bias": false, "use_cache": false, "vocab_size": 103424})");
  EXPECT_EQ(dense.parameter_count(), 360748032);  // "0.3B" without embeddings
  const ModelConfig experts = published(R"({"architectures": ["Ernie4_5_MoeForCausalLM"], "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 12288,
    "max_position_embeddings": 131072, "model_type": "ernie4_5_moe", "moe_capacity": [64, 64, 64],
    "moe_gate": "topk", "moe_intermediate_size": 1536, "moe_k": 6, "moe_layer_end_index": 27,
    "moe_layer_interval": 1, "moe_layer_start_index": 1, "moe_num_experts": 64, "moe_num_shared_experts": 2,
    "moe_use_aux_free": true, "num_attention_heads": 20, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "num_nextn_predict_layers": 1, "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_theta": 500000,
    "tie_word_embeddings": true, "use_bias": false, "vocab_size": 103424})");
  EXPECT_EQ(experts.parameter_count(), 21825436160);        // "21B"
  EXPECT_EQ(experts.active_parameter_count(), 3352148480);  // "3B"
  EXPECT_EQ(experts.moe.first_dense_layers, 1);
  EXPECT_TRUE(experts.moe.expert_bias);
}

TEST(HfConfig, OfErnieOneRunOfLayersHasExperts) {
  const auto read = [](int64_t first, int64_t last) {
    const ModelConfig model = read_edited(tiny_ernie_moe(), [=](Json& file) {
      file["moe_layer_start_index"] = first;
      file["moe_layer_end_index"] = last;
    });
    std::string layers;
    for (int64_t layer = 0; layer < model.num_layers; ++layer) layers += model.is_moe_layer(layer) ? 'E' : '-';
    const std::string text = text_of(model);
    EXPECT_EQ(text_of(read_hf_config(text, "config.json").model), text);
    return layers;
  };
  EXPECT_EQ(read(0, -1), "EEEEE");
  EXPECT_EQ(read(2, 9), "--EEE");
  EXPECT_EQ(read(1, 3), "-EEE-");
  EXPECT_EQ(read(3, 3), "---E-");
  EXPECT_EQ(read(0, 0), "E----");
  EXPECT_THAT(message_of([&] { read(4, 2); }), HasSubstr("'moe_layer_end_index'"));
  EXPECT_THAT(message_of([&] { read(5, -1); }), HasSubstr("'moe_layer_end_index'"));
  EXPECT_THAT(edited_refusal(tiny_ernie_moe(), "moe_layer_interval", 2), HasSubstr("'moe_layer_interval'"));
  EXPECT_THAT(edited_refusal(tiny_ernie_moe(), "use_bias", true), HasSubstr("'use_bias'"));
  EXPECT_THAT(edited_refusal(tiny_ernie_moe(), "moe_norm_min", 0.1), HasSubstr("'moe_norm_min'"));
  const auto pattern = [](ModelConfig& c) { c.moe.layers = {.pattern = {false, true, false, true, false}}; };
  EXPECT_THAT(family_refusal(tiny_ernie_moe(), pattern), says("Ernie4_5_MoeForCausalLM", "--moe-layer-freq"));
}

// huggingface.co/CohereLabs/c4ai-command-r-v01 and c4ai-command-r7b-12-2024
TEST(HfConfig, ReadsThePublishedCoheres) {
  const ModelConfig first = published(R"({"architectures": ["CohereForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 5, "eos_token_id": 255001, "hidden_act": "silu", "hidden_size": 8192,
    "initializer_range": 0.02, "intermediate_size": 22528, "layer_norm_eps": 1e-05, "logit_scale": 0.0625,
    "max_position_embeddings": 8192, "model_type": "cohere", "num_attention_heads": 64, "num_hidden_layers": 40,
    "num_key_value_heads": 64, "pad_token_id": 0, "rope_theta": 8000000.0, "use_qk_norm": false,
    "vocab_size": 256000})");
  EXPECT_EQ(first.parameter_count(), 34980831232);  // "35B"
  EXPECT_EQ(first.logit_scale, 0.0625);
  const ModelConfig second = published(R"({"architectures": ["Cohere2ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 5, "cache_implementation": "hybrid", "eos_token_id": 255001,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "layer_norm_eps": 1e-05, "logit_scale": 0.25, "max_position_embeddings": 8192, "model_type": "cohere2",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pad_token_id": 0,
    "rope_theta": 50000, "sliding_window": 4096, "sliding_window_pattern": 4, "vocab_size": 256000})");
  EXPECT_EQ(second.parameter_count(), 8028033024);  // "7B"
  for (int64_t layer = 0; layer < 32; ++layer) {
    EXPECT_EQ(second.has_rope(layer), layer % 4 != 3) << layer;
    EXPECT_EQ(second.window_of_layer(layer), layer % 4 != 3 ? 4096 : 0) << layer;
  }
}

TEST(HfConfig, OfCohereWhatIsAnotherModelIsRefused) {
  EXPECT_THAT(edited_refusal(tiny_cohere(), "use_qk_norm", true), HasSubstr("'use_qk_norm'"));
  EXPECT_THAT(edited_refusal(tiny_cohere2(), "sliding_window_pattern", 0), HasSubstr("'sliding_window_pattern'"));
  EXPECT_THAT(family_refusal(tiny_cohere2(), [](ModelConfig& c) { c.rope_layers = {}; }),
              says("Cohere2ForCausalLM", "--no-rope-freq"));
  EXPECT_THAT(family_refusal(tiny_cohere(), [](ModelConfig& c) { c.rope_layers = {.skip_freq = 2}; }),
              says("Cohere2ForCausalLM", "--no-rope-freq"));
  EXPECT_THAT(family_refusal(tiny_cohere(), [](ModelConfig& c) { c.residual_form = ResidualForm::kSequential; }),
              says("CohereForCausalLM", "--residual-form"));
  EXPECT_THAT(family_refusal(tiny_cohere(), [](ModelConfig& c) { c.kv_channels = 6; }),
              says("CohereForCausalLM", "--kv-channels"));
  const auto none = [](Json& file) { file["layer_types"] = {"full_attention", "full_attention"}; };
  const ModelConfig without = read_edited(tiny_cohere2(), none);
  EXPECT_EQ(without.window_size, 0);
  EXPECT_FALSE(without.has_rope(0));
  EXPECT_EQ(hf_family(without).architecture, "Cohere2ForCausalLM");
}

TEST(HfFamily, MultipliersAndBiaslessNormsAreNamedWhereAFamilyLacksThem) {
  EXPECT_THAT(family_refusal(tiny_qwen3(), [](ModelConfig& c) { c.residual_multiplier = 2; }),
              says("GraniteForCausalLM", "--qk-layernorm"));
  const std::vector<std::pair<const char*, double ModelConfig::*>> factors = {
      {"--embedding-multiplier", &ModelConfig::embedding_multiplier},
      {"--residual-multiplier", &ModelConfig::residual_multiplier},
      {"--logit-scale", &ModelConfig::logit_scale}};
  for (const ModelConfig& config : tiny_models()) {
    for (const auto& [setting, factor] : factors) {
      ModelConfig changed = config;
      changed.*factor = 3;
      std::string outcome;
      const std::string message = message_of([&] { outcome = hf_family(changed).architecture; });
      EXPECT_THAT(outcome + message, AnyOf(HasSubstr(setting), HasSubstr("Granite"), HasSubstr("Cohere")));
    }
  }
  EXPECT_THAT(family_refusal(tiny_gemma2(), [](ModelConfig& c) { c.embedding_multiplier = 3; }),
              says("Gemma2ForCausalLM", "--embedding-multiplier"));
  EXPECT_THAT(family_refusal(tiny_cohere(), [](ModelConfig& c) { c.residual_multiplier = 3; }),
              says("CohereForCausalLM", "--residual-multiplier"));
  EXPECT_THAT(family_refusal(tiny_phi2(), [](ModelConfig& c) { c.logit_scale = 3; }),
              says("PhiForCausalLM", "--logit-scale"));
  EXPECT_THAT(family_refusal(tiny_phi2(), [](ModelConfig& c) { c.norm_bias = false; }),
              says("PhiForCausalLM", "--layernorm-bias"));
  EXPECT_THAT(family_refusal(tiny_nemotron(), [](ModelConfig& c) { c.norm_bias = false; }),
              says("NemotronForCausalLM", "--layernorm-bias"));
}

}  // namespace
}  // namespace ranklab
