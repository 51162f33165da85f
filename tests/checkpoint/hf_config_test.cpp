// Configurations as Hugging Face publishes them: what is read from them, and what is written.
#include "core/checkpoint/hf/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/spec/presets.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

TEST(HfConfig, ReadsWhatItWrites) {
  for (const ModelConfig& config : tiny_models()) {
    const std::string text = text_of(config);
    const HfConfig read = read_hf_config(text, "config.json");
    EXPECT_EQ(text_of(read.model), text);
    EXPECT_THAT(read.unknown_keys, IsEmpty());
    EXPECT_EQ(read.family.architecture, hf_family(config).architecture);
    EXPECT_EQ(count_model(read.model, 8).total, count_model(config, 8).total);
    EXPECT_EQ(read.model.mla, config.mla);
    EXPECT_EQ(read.model.yarn.enabled() ? read.model.yarn : YarnConfig{}, config.yarn);
    EXPECT_EQ(read.model.rope_scaling.kind, config.rope_scaling.kind);
    EXPECT_EQ(read.model.rotary_percent, config.rotary_percent);
    EXPECT_EQ(read.model.window_size, config.window_size);
    EXPECT_EQ(read.model.window_layers, config.window_layers);
    EXPECT_EQ(read.model.norm_placement, config.norm_placement);
    EXPECT_EQ(read.model.rope_scaling.long_factors, config.rope_scaling.long_factors);
    EXPECT_EQ(read.model.residual_form, config.residual_form);
    EXPECT_EQ(read.model.activation, config.activation);
    EXPECT_EQ(read.model.local_rope_theta, config.local_rope_theta);
    EXPECT_EQ(read.model.query_pre_attn_scalar, config.query_pre_attn_scalar);
    EXPECT_EQ(read.model.attn_logit_softcapping, config.attn_logit_softcapping);
    EXPECT_EQ(read.model.final_logit_softcapping, config.final_logit_softcapping);
    EXPECT_EQ(read.model.qk_norm_width, config.qk_norm_width);
    EXPECT_EQ(read.model.add_attention_bias, config.add_attention_bias);
    EXPECT_EQ(read.model.hf_architecture, config.hf_architecture);
    EXPECT_EQ(read.model.hf_rope_interleave, config.hf_rope_interleave);
    EXPECT_EQ(read.model.moe.normalizes(), config.moe.normalizes());
    EXPECT_EQ(read.model.seq_length, config.seq_length);
    EXPECT_EQ(read.model.moe.group_topk, config.moe.group_topk);
    EXPECT_EQ(read.model.num_query_groups, config.num_query_groups);
    EXPECT_EQ(read.model.dropout, config.dropout);
    EXPECT_EQ(read.model.kv_channels, config.kv_channels);
    EXPECT_EQ(read.model.add_qkv_bias, config.add_qkv_bias);
    EXPECT_EQ(read.model.qk_norm, config.qk_norm);
    EXPECT_EQ(read.model.moe.shared_gate, config.moe.shared_gate);
    EXPECT_EQ(read.model.moe.first_dense_layers, config.moe.first_dense_layers);
    EXPECT_EQ(read.model.moe.normalize_topk, config.moe.normalize_topk);
  }
}

TEST(HfConfig, EveryPresetHasAFamily) {
  for (const ModelPreset& preset : model_presets()) {
    const std::string text = text_of(preset.config);
    EXPECT_EQ(text_of(read_hf_config(text, "config.json").model), text) << preset.name;
  }
}

// The keys of huggingface.co/deepseek-ai/DeepSeek-V3/raw/main/config.json that say what the model computes.
TEST(HfConfig, DeepSeekV3IsThePublishedOne) {
  const Json ours = Json::parse(text_of(model_preset("deepseek_v3")));
  const Json published = Json::parse(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false,
    "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
    "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
    "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
    "v_head_dim": 128, "vocab_size": 129280})");
  for (const auto& [key, value] : published.items()) EXPECT_EQ(ours.value(key, Json()), value) << key;
  const Json scaling = Json::parse(R"({"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
    "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"})");
  for (const auto& [key, value] : scaling.items()) EXPECT_EQ(ours["rope_scaling"].value(key, Json()), value) << key;
}

// The keys of huggingface.co/Qwen/Qwen3-30B-A3B/raw/main/config.json.
TEST(HfConfig, ReadsThePublishedQwen3Moe) {
  const HfConfig read = read_hf_config(R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
    "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
    "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": false,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
    "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})",
                                       "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  EXPECT_EQ(read.model.kv_channels, 128);
  EXPECT_EQ(read.model.moe.num_experts, 128);
  EXPECT_EQ(count_model(read.model, 8).total, 30532122624);  // "30.5B in total and 3.3B activated"
  EXPECT_EQ(count_model(read.model, 8).active, 3353032704);
}

// The keys of huggingface.co/Qwen/Qwen1.5-MoE-A2.7B/raw/main/config.json, with the experts of transformers 5.
TEST(HfConfig, ReadsThePublishedQwen2Moe) {
  const HfConfig read = read_hf_config(R"({"architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 5632, "max_position_embeddings": 8192, "max_window_layers": 21,
    "model_type": "qwen2_moe", "num_attention_heads": 16, "num_hidden_layers": 24, "num_key_value_heads": 16,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936,
    "decoder_sparse_step": 1, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
    "num_experts_per_tok": 4, "num_local_experts": 60, "norm_topk_prob": false, "output_router_logits": false,
    "router_aux_loss_coef": 0.001, "layer_types": ["full_attention", "full_attention"]})",
                                       "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  EXPECT_TRUE(read.model.add_qkv_bias);
  EXPECT_EQ(count_model(read.model, 8).total, 14315784192);  // "14.3B parameters in total and 2.7B activated"
  EXPECT_EQ(read.model.moe.num_experts, 60);
  EXPECT_FALSE(read.model.moe.normalize_topk);
}

TEST(HfConfig, WhatAFileWithoutTheKeyMeans) {
  const auto without = [](const ModelConfig& config, const std::string& key) {
    Json file = Json::parse(text_of(config));
    file.erase(key);
    return read_hf_config(file.dump(), "config.json").model;
  };
  EXPECT_EQ(without(tiny_qwen3(), "head_dim").kv_channels, 128);  // the class says so
  EXPECT_EQ(without(tiny_qwen3_moe(), "head_dim").kv_channels, 0);
  EXPECT_EQ(without(tiny_llama(), "head_dim").kv_channels, 0);
  EXPECT_EQ(without(tiny_mixtral(), "rope_theta").rope_theta, 1e6);
  EXPECT_EQ(without(tiny_qwen3_moe(), "rope_theta").rope_theta, 1e4);
  EXPECT_FALSE(without(tiny_qwen3_moe(), "norm_topk_prob").moe.normalize_topk);
  EXPECT_EQ(without(tiny_qwen3_moe(), "mlp_only_layers").moe.first_dense_layers, 0);
  EXPECT_TRUE(without(tiny_qwen2_moe(), "qkv_bias").add_qkv_bias);
}

// transformers 5 has rope_theta and the scaling in one object.
TEST(HfConfig, RotaryPositionsOfEitherForm) {
  for (const ModelConfig& config :
       {tiny_deepseek(), tiny_llama3(), tiny_linear(), tiny_dynamic(), tiny_mistral(), tiny_halves()}) {
    Json file = Json::parse(text_of(config));
    const std::string before = text_of(read_hf_config(file.dump(), "config.json").model);
    Json both = file["rope_scaling"];
    both["rope_theta"] = file["rope_theta"];
    both.erase("type");
    file.erase("rope_scaling");
    file.erase("rope_theta");
    file["rope_parameters"] = both;
    EXPECT_EQ(text_of(read_hf_config(file.dump(), "config.json").model), before);
  }
  Json llama = Json::parse(text_of(tiny_llama()));
  llama.erase("rope_theta");
  EXPECT_EQ(read_hf_config(llama.dump(), "config.json").model.rope_theta, 10000.0);
  llama["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 77.0}};
  EXPECT_EQ(read_hf_config(llama.dump(), "config.json").model.rope_theta, 77.0);
}

TEST(HfConfig, RowsInHalvesAreTakenAsTheyAreAndWrittenSo) {
  Json file = Json::parse(text_of(tiny_deepseek()));
  EXPECT_EQ(file["rope_interleave"], true);
  file["rope_interleave"] = false;
  const HfConfig config = read_hf_config(file.dump(), "config.json");
  for (const HfTensor& tensor : hf_mapping(config.model, config.family)) {
    for (const HfPart& part : tensor.parts) EXPECT_EQ(part.layout, HfLayout::kSame) << part.name;
  }
  EXPECT_EQ(Json::parse(text_of(config.model)), file);
}

// The keys of huggingface.co/meta-llama/Llama-3.1-8B and Llama-3.2-1B (raw/main/config.json) that say what they
// compute.
TEST(HfConfig, ReadsThePublishedLlamas) {
  const auto published = [](const std::string& sizes, const std::string& factor, bool tied) {
    return R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
      "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "initializer_range": 0.02,
      "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
      "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256, "rope_scaling": {"low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3", "factor": )" +
           factor + R"(}, "tie_word_embeddings": )" + (tied ? "true" : "false") + ", " + sizes + "}";
  };
  const auto expect_preset = [](const std::string& text, const char* preset) {
    const HfConfig read = read_hf_config(text, "config.json");
    EXPECT_THAT(read.unknown_keys, IsEmpty());
    EXPECT_EQ(read.model.seq_length, 131072);
    ModelConfig same_length = read.model;
    same_length.seq_length = model_preset(preset).seq_length;
    EXPECT_EQ(same_length.hf_bos_token, 128000);
    same_length.hf_bos_token = -1;  // a preset names no tokens
    same_length.hf_eos_tokens = {};
    EXPECT_EQ(text_of(same_length), text_of(model_preset(preset)));
  };
  expect_preset(published(R"("hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32)", "8.0", false),
                "llama_8b");
  expect_preset(published(R"("hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64)",
                          "32.0", true),
                "llama_1b");
}

// huggingface.co/mistralai/Mistral-7B-v0.3/raw/main/config.json
TEST(HfConfig, ReadsThePublishedMistral) {
  const std::string text = R"({"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.42.0.dev0", "use_cache": true, "vocab_size": 32768})";
  const HfConfig read = read_hf_config(text, "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(read.model, 8).total, 7248023552);  // "7B"
  EXPECT_EQ(Json::parse(text_of(read.model))["architectures"][0], "MistralForCausalLM");
  ModelConfig other = read.model;
  other.add_attention_bias = true;  // which only Llama's class has
  EXPECT_EQ(hf_family(other).architecture, "LlamaForCausalLM");
  Json file = Json::parse(text);
  file.erase("sliding_window");  // as the first Mistral 7B has it
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.window_size, 4096);
}

// The keys of huggingface.co/stabilityai/stablelm-2-1_6b and microsoft/phi-4 (raw/main/config.json).
TEST(HfConfig, ReadsThePublishedStableLmAndPhi4) {
  const HfConfig stablelm = read_hf_config(R"({"architectures": ["StableLmForCausalLM"], "bos_token_id": 100257,
    "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 5632, "layer_norm_eps": 1e-05, "max_position_embeddings": 4096, "model_type": "stablelm",
    "num_attention_heads": 32, "num_hidden_layers": 24, "num_key_value_heads": 32, "partial_rotary_factor": 0.25,
    "rope_theta": 10000, "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true,
    "use_qkv_bias": true, "vocab_size": 100352})",
                                           "config.json");
  EXPECT_THAT(stablelm.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(stablelm.model, 8).total, 1644515328);  // "1.6 billion"
  EXPECT_EQ(stablelm.model.rotary_width(), 16);
  const HfConfig phi = read_hf_config(R"({"architectures": ["Phi3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 100257, "embd_pdrop": 0.0, "eos_token_id": 100265, "hidden_act": "silu",
    "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 17920, "max_position_embeddings": 16384,
    "model_type": "phi3", "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
    "original_max_position_embeddings": 16384, "pad_token_id": 100349, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
    "rope_scaling": null, "rope_theta": 250000, "sliding_window": null, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 100352})",
                                      "config.json");
  EXPECT_THAT(phi.unknown_keys, ElementsAre("attention_bias"));  // which the class has not
  EXPECT_EQ(count_model(phi.model, 8).total, 14659507200);       // "14B"
}

// Behind the first max_window_layers, layers of Qwen have the window.
TEST(HfConfig, WindowsOfQwen) {
  const auto window = [](const std::function<void(Json&)>& change) {
    Json file = Json::parse(text_of(tiny_qwen2_window()));
    change(file);
    return read_hf_config(file.dump(), "config.json").model.window_size;
  };
  EXPECT_EQ(window([](Json&) {}), 6);
  EXPECT_EQ(window([](Json& file) { file["layer_types"] = {"sliding_attention", "sliding_attention"}; }), 6);
  EXPECT_EQ(window([](Json& file) { file.erase("sliding_window"); }), 4096);
  EXPECT_EQ(window([](Json& file) { file["sliding_window"] = nullptr; }), 0);
  EXPECT_EQ(window([](Json& file) { file["use_sliding_window"] = false; }), 0);
  EXPECT_EQ(window([](Json& file) { file["max_window_layers"] = 2; }), 0);
  EXPECT_EQ(window([](Json& file) { file.erase("max_window_layers"); }), 0);  // 28 of 2 layers
  EXPECT_EQ(window([](Json& file) { file["layer_types"] = {"full_attention", "full_attention"}; }), 0);
  const auto layers = [](const std::function<void(Json&)>& change) {
    Json file = Json::parse(text_of(tiny_qwen2_window()));
    file["num_hidden_layers"] = 6;
    change(file);
    return layer_pattern_text(read_hf_config(file.dump(), "config.json").model.window_layers);
  };
  EXPECT_EQ(layers([](Json& file) { file["max_window_layers"] = 4; }), "[0]*4+[1]*2");
  EXPECT_EQ(layers([](Json& file) { file["max_window_layers"] = 6; }), "0");
  const char *near = "sliding_attention", *all = "full_attention";
  // A list counts more than a number of first layers.
  EXPECT_EQ(layers([&](Json& file) {
              file["max_window_layers"] = 6;
              file["layer_types"] = {near, near, all, near, near, all};
            }),
            "3");
  EXPECT_EQ(layers([&](Json& file) { file["layer_types"] = {near, near, all, all, near, all}; }),
            "[1]*2+[0]*2+[1]+[0]");
  const auto refusal = [&](const std::function<void(Json&)>& change) { return message_of([&] { layers(change); }); };
  EXPECT_THAT(refusal([&](Json& file) { file["layer_types"] = {near, all}; }), HasSubstr("for every layer"));
  EXPECT_THAT(refusal([&](Json& file) { file["layer_types"] = {near, all, all, all, all, "chunked_attention"}; }),
              HasSubstr("sliding_attention or full_attention"));
  EXPECT_THAT(refusal([&](Json& file) {
                file["use_sliding_window"] = false;
                file["layer_types"] = {near, all, all, all, all, all};
              }),
              HasSubstr("the file names no window"));
}

// Where transformers looks for the original length, and what it takes for none.
TEST(HfConfig, OriginalLengthOfAStretch) {
  const auto original = [](const std::function<void(Json&)>& change) {
    Json file = Json::parse(text_of(tiny_llama3()));
    change(file);
    return read_hf_config(file.dump(), "config.json").model.rope_scaling.original_seq_length;
  };
  EXPECT_EQ(original([](Json&) {}), 12);
  EXPECT_EQ(original([](Json& file) { file["rope_scaling"].erase("original_max_position_embeddings"); }), 16);
  EXPECT_EQ(original([](Json& file) { file["original_max_position_embeddings"] = 10; }), 10);
}

TEST(HfConfig, DynamicPositionsGrowFromTheLengthOfTheFile) {
  Json file = Json::parse(text_of(tiny_dynamic()));
  EXPECT_EQ(file["max_position_embeddings"], 8);
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.seq_length, 16);
  file["rope_scaling"]["original_max_position_embeddings"] = 8;  // as some files have it
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.seq_length, 16);
  file["rope_scaling"]["original_max_position_embeddings"] = 4;  // which the class passes over
  EXPECT_THAT(message_of([&] { read_hf_config(file.dump(), "config.json"); }),
              HasSubstr("'rope_scaling.original_max_position_embeddings'"));
}

TEST(HfConfig, TokensThatItNamesAreKept) {
  for (const ModelConfig& config : tiny_models()) {
    Json file = Json::parse(text_of(config));
    file["bos_token_id"] = 3;
    file["eos_token_id"] = {1, 4};
    file["pad_token_id"] = 2;
    const ModelConfig read = read_hf_config(file.dump(), "config.json").model;
    EXPECT_EQ(read.hf_eos_tokens, (std::vector<int64_t>{1, 4}));
    const auto in_any_order = [](const std::string& text) { return nlohmann::json::parse(text); };
    EXPECT_EQ(in_any_order(text_of(read)), in_any_order(file.dump())) << file["architectures"];
    file["eos_token_id"] = 4;
    EXPECT_EQ(Json::parse(text_of(read_hf_config(file.dump(), "config.json").model))["eos_token_id"], 4);
  }
  Json file = Json::parse(text_of(tiny_llama()));
  EXPECT_FALSE(file.contains("pad_token_id"));
  file["pad_token_id"] = -1;  // as the first Llama has it
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.hf_pad_token, -1);
  file["eos_token_id"] = "</s>";
  EXPECT_THAT(message_of([&] { read_hf_config(file.dump(), "config.json"); }), HasSubstr("'eos_token_id'"));
}

TEST(HfConfig, KeysNobodyKnowsAreListed) {
  Json file = Json::parse(text_of(tiny_llama()));
  file["new_trick"] = true;
  file["transformers_version"] = "9";
  EXPECT_THAT(read_hf_config(file.dump(), "config.json").unknown_keys, ElementsAre("new_trick"));
}

}  // namespace
}  // namespace ranklab
