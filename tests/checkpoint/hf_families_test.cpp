// OLMo 2, Gemma, GPT-NeoX, Phi: their published files, and the settings that only their families have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/checkpoint/hf/config.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

// The keys of huggingface.co/google/gemma-2-2b and gemma-3-1b-it (raw/main/config.json).
TEST(HfConfig, ReadsThePublishedGemmas) {
  const HfConfig second = read_hf_config(R"({"architectures": ["Gemma2ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": 1, "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "initializer_range": 0.02,
    "intermediate_size": 9216, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
    "num_hidden_layers": 26, "num_key_value_heads": 4, "pad_token_id": 0, "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096, "torch_dtype": "float32",
    "transformers_version": "4.42.4", "use_cache": true, "vocab_size": 256000})",
                                         "config.json");
  EXPECT_THAT(second.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(second.model, 8).total, 2614341888);  // "2.6B"
  EXPECT_EQ(second.model.window_of_layer(24), 4096);
  EXPECT_EQ(second.model.window_of_layer(25), 0);
  EXPECT_EQ(second.model.attn_logit_softcapping, 50);
  EXPECT_EQ(second.model.query_pre_attn_scalar, 0);  // the width of a head
  const std::string text = R"({"architectures": ["Gemma3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": [1, 106], "final_logit_softcapping": null, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "initializer_range": 0.02,
    "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
    "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling": null,
    "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0", "use_cache": true, "vocab_size": 262144})";
  const HfConfig third = read_hf_config(text, "config.json");
  EXPECT_THAT(third.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(third.model, 8).total, 999885952);  // "1B"
  EXPECT_EQ(third.model.window_layers, LayerPattern{.skip_freq = 6});
  EXPECT_EQ(third.model.local_rope_theta, 10000);
  EXPECT_EQ(third.model.rope_theta, 1e6);
  // As transformers 5 writes the same positions.
  Json file = Json::parse(text);
  for (const char* key : {"rope_theta", "rope_local_base_freq", "rope_scaling", "sliding_window_pattern"})
    file.erase(key);
  file["rope_parameters"] = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
                             {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3e4}}}};
  const ModelConfig newer = read_hf_config(file.dump(), "config.json").model;
  EXPECT_EQ(newer.rope_theta, 2e6);
  EXPECT_EQ(newer.local_rope_theta, 3e4);
  EXPECT_EQ(newer.rope_scaling.kind, RopeScalingKind::kLinear);
  EXPECT_EQ(newer.window_layers, LayerPattern{.skip_freq = 6});
  file["rope_parameters"]["sliding_attention"]["rope_type"] = "linear";
  EXPECT_THAT(message_of([&] { read_hf_config(file.dump(), "config.json"); }),
              HasSubstr("rope_parameters.sliding_attention.rope_type"));
}

TEST(HfConfig, OfOneLayerInSixSaysNothingWhereThereAreFive) {
  for (const int64_t layers : {1, 5, 6, 7}) {
    HfConfig config = read_hf_config(R"({"architectures": ["Gemma3ForCausalLM"], "vocab_size": 8, "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 8,
      "sliding_window": 4, "sliding_window_pattern": 6})",
                                     "config.json");
    config.model.num_layers = layers;
    const std::string text = hf_config_json(config.model, config.family, TensorType::kF32);
    EXPECT_EQ(Json::parse(text).contains("sliding_window_pattern"), layers > 5);
    const HfConfig again = read_hf_config(text, "config.json");
    EXPECT_EQ(hf_config_json(again.model, again.family, TensorType::kF32), text);
    for (int64_t layer = 0; layer < layers; ++layer)
      EXPECT_EQ(again.model.window_of_layer(layer), layer == 5 ? 0 : 4) << layer;
  }
}

// The keys of huggingface.co/EleutherAI/pythia-1.4b and microsoft/phi-2 (raw/main/config.json).
TEST(HfConfig, ReadsThePublishedPythiaAndPhi2) {
  const HfConfig pythia = read_hf_config(R"({"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0,
    "eos_token_id": 0, "hidden_act": "gelu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
    "num_attention_heads": 16, "num_hidden_layers": 24, "rotary_emb_base": 10000, "rotary_pct": 0.25,
    "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true, "use_parallel_residual": true,
    "vocab_size": 50304})",
                                         "config.json");
  EXPECT_THAT(pythia.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(pythia.model, 8).total, 1414647808);  // "1.4B"
  EXPECT_EQ(pythia.model.rotary_width(), 32);
  EXPECT_EQ(pythia.model.activation, ActivationKind::kGeluErf);
  const HfConfig phi = read_hf_config(R"({"architectures": ["PhiForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256, "hidden_act": "gelu_new", "hidden_size": 2560,
    "initializer_range": 0.02, "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
    "model_type": "phi", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "partial_rotary_factor": 0.4, "qk_layernorm": false, "resid_pdrop": 0.1, "rope_scaling": null,
    "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true,
    "vocab_size": 51200})",
                                      "config.json");
  EXPECT_THAT(phi.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(phi.model, 8).total, 2779683840);  // "2.7 billion"
  EXPECT_EQ(phi.model.rotary_width(), 32);
  EXPECT_EQ(phi.model.dropout, 0.1);
}

// As microsoft/Phi-3-mini-128k-instruct has it, and as transformers 5 writes it.
TEST(HfConfig, StretchesOfPhi3) {
  const auto read = [](const std::function<void(Json&)>& change) {
    Json file = Json::parse(text_of(tiny_long()));
    change(file);
    return read_hf_config(file.dump(), "config.json").model.rope_scaling;
  };
  const RopeScaling want = tiny_long().rope_scaling;
  EXPECT_EQ(read([](Json& file) { EXPECT_EQ(file["rope_scaling"].size(), 3u); }), want);
  EXPECT_EQ(read([](Json& file) { file["rope_scaling"]["type"] = "su"; }), want);
  EXPECT_EQ(read([](Json& file) {
              file["rope_parameters"] = file["rope_scaling"];
              file["rope_parameters"]["rope_type"] = "longrope";
              file["rope_parameters"]["original_max_position_embeddings"] = 4;
              file.erase("rope_scaling");
            }),
            want);
  const auto refusal = [&](const std::function<void(Json&)>& change) { return message_of([&] { read(change); }); };
  EXPECT_THAT(refusal([](Json& file) { file["rope_scaling"]["long_factor"] = {1.0}; }), HasSubstr("got 1 numbers"));
  EXPECT_THAT(refusal([](Json& file) { file["rope_scaling"]["short_factor"] = "x"; }), HasSubstr("a list of numbers"));
  EXPECT_THAT(refusal([](Json& file) { file["original_max_position_embeddings"] = 17; }),
              HasSubstr("at most max_position_embeddings"));
}

// Files of transformers 4 name one base, and stretch the positions of layers without a window alone.
TEST(HfConfig, LayersOfOlmo3WithAWindowKeepPlainPositions) {
  Json file = Json::parse(text_of(tiny_olmo3()));
  EXPECT_EQ(file["rope_parameters"]["sliding_attention"]["rope_theta"], 500.0);
  EXPECT_EQ(file["rope_parameters"]["full_attention"]["rope_type"], "yarn");
  file.erase("rope_parameters");
  file["rope_theta"] = 70.0;
  file.erase("layer_types");
  const ModelConfig read = read_hf_config(file.dump(), "config.json").model;
  EXPECT_EQ(read.rope_theta, 70);
  EXPECT_EQ(read.local_rope_theta, 70);
  EXPECT_TRUE(read.yarn.enabled());
  EXPECT_EQ(read.window_layers, LayerPattern{.skip_freq = 4});
  EXPECT_THAT(family_refusal(tiny_olmo3(), [](ModelConfig& c) { c.local_rope_theta = 9; }),
              says("Olmo3ForCausalLM", "--rotary-base-local"));
}

// The keys of huggingface.co/HuggingFaceTB/SmolLM3-3B (raw/main/config.json).
TEST(HfConfig, ReadsThePublishedSmolLm3) {
  Json file = Json::parse(R"({"architectures": ["SmolLM3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": null, "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048,
    "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28,
    "mlp_bias": false, "model_type": "smollm3", "no_rope_layer_interval": 4, "num_attention_heads": 16,
    "num_hidden_layers": 36, "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 5000000.0, "sliding_window": null,
    "torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0", "use_cache": false, "use_sliding_window": false,
    "vocab_size": 128256})");
  const auto read = [&](const std::function<void(Json&)>& change) {
    Json changed = file;
    change(changed);
    return read_hf_config(changed.dump(), "config.json");
  };
  const HfConfig config = read([](Json&) {});
  EXPECT_THAT(config.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(config.model, 8).total, 3075098624);  // "3B"
  EXPECT_TRUE(config.model.tie_embeddings);
  EXPECT_EQ(config.model.rope_theta, 5e6);
  EXPECT_EQ(config.model.rope_layers, LayerPattern{.skip_freq = 4});
  const Json listed = {1, 0, 1, 0};
  const ModelConfig two = read([&](Json& f) {
                            f["num_hidden_layers"] = 4, f["no_rope_layers"] = listed, f["rope_theta"] = nullptr;
                            f.erase("rope_theta");
                          }).model;
  EXPECT_EQ(two.rope_layers, LayerPattern{.skip_freq = 2});
  EXPECT_EQ(two.rope_theta, 2e6);
  // A window, where there is one and no list says whose it is, is that of layers without positions.
  const auto windows = [&](const Json& rotary) {
    return read([&](Json& f) {
             f["num_hidden_layers"] = 4, f["no_rope_layers"] = rotary;
             f["use_sliding_window"] = true, f["sliding_window"] = 512;
           })
        .model;
  };
  EXPECT_EQ(windows(listed).window_layers, (LayerPattern{.pattern = {false, true, false, true}}));
  EXPECT_EQ(windows({1, 1, 1, 1}).window_size, 0);
  EXPECT_EQ(windows({0, 0, 0, 0}).window_layers, LayerPattern{});
}

// The keys of huggingface.co/nvidia/Minitron-4B-Base (raw/main/config.json).
TEST(HfConfig, ReadsThePublishedMinitron) {
  const HfConfig read = read_hf_config(R"({"architectures": ["NemotronForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 3, "head_dim": 128, "hidden_act": "relu2",
    "hidden_size": 3072, "initializer_range": 0.0134, "intermediate_size": 9216, "max_position_embeddings": 4096,
    "mlp_bias": false, "model_type": "nemotron", "norm_eps": 1e-05, "num_attention_heads": 24,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true,
    "vocab_size": 256000})",
                                       "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  EXPECT_EQ(count_model(read.model, 8).total, 4190509056);  // "4B"
  EXPECT_EQ(read.model.rotary_width(), 64);
  EXPECT_TRUE(read.model.norm_1p);
  EXPECT_EQ(read.model.activation, ActivationKind::kSquaredRelu);
}

TEST(HfFamily, WhatSmolLm3AndNemotronCannotExpressIsNamed) {
  EXPECT_THAT(family_refusal(tiny_smollm3(), [](ModelConfig& c) { c.qk_norm = true; }),
              says("Qwen3ForCausalLM", "--no-rope-freq"));
  EXPECT_THAT(family_refusal(tiny_smollm3(), [](ModelConfig& c) { c.add_qkv_bias = true; }),
              says("Qwen2ForCausalLM", "--no-rope-freq"));
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.rope_layers = {.skip_freq = 2}; }),
              says("DeepseekV3ForCausalLM", "--no-rope-freq"));
  EXPECT_THAT(family_refusal(tiny_smollm3(), [](ModelConfig& c) { c.position = PositionKind::kNone; }),
              says("SmolLM3ForCausalLM", "--position-embedding-type"));
  EXPECT_THAT(family_refusal(tiny_nemotron(), [](ModelConfig& c) { c.norm_1p = false; }),
              says("NemotronForCausalLM", "--apply-layernorm-1p"));
  EXPECT_THAT(family_refusal(tiny_nemotron(), [](ModelConfig& c) { c.norm = NormKind::kRmsNorm; }),
              says("NemotronForCausalLM", "--normalization"));
  EXPECT_THAT(family_refusal(tiny_nemotron(), [](ModelConfig& c) { c.window_size = 4; }),
              says("NemotronForCausalLM", "--window-size"));
}

TEST(HfFamily, WhereNormsStandIsNamed) {
  EXPECT_THAT(family_refusal(tiny_deepseek(), [](ModelConfig& c) { c.norm_placement = NormPlacement::kBoth; }),
              says("DeepseekV3ForCausalLM", "--norm-placement"));
  EXPECT_THAT(family_refusal(tiny_gemma2(), [](ModelConfig& c) { c.norm_1p = false; }),
              says("Gemma2ForCausalLM", "--apply-layernorm-1p"));
  EXPECT_THAT(family_refusal(tiny_glm4(), [](ModelConfig& c) { c.norm = NormKind::kLayerNorm; }),
              says("Glm4ForCausalLM", "--normalization"));
  EXPECT_THAT(family_refusal(tiny_glm4(), [](ModelConfig& c) { c.window_size = 4; }),
              says("Glm4ForCausalLM", "--window-size"));
  EXPECT_THAT(family_refusal(tiny_llama(), [](ModelConfig& c) { c.norm_placement = NormPlacement::kBehind; }),
              says("Olmo2ForCausalLM", "--qk-layernorm"));
  EXPECT_THAT(family_refusal(tiny_qwen3(), [](ModelConfig& c) { c.qk_norm_width = QkNormWidth::kAllHeads; }),
              says("Qwen3ForCausalLM", "--qk-layernorm-width"));
  EXPECT_THAT(family_refusal(tiny_olmo2(), [](ModelConfig& c) { c.qk_norm_width = QkNormWidth::kHead; }),
              says("Olmo2ForCausalLM", "--qk-layernorm-width"));
  EXPECT_THAT(family_refusal(tiny_olmo2(), [](ModelConfig& c) { c.qk_norm = false; }),
              says("Olmo2ForCausalLM", "--qk-layernorm"));
  EXPECT_THAT(family_refusal(tiny_olmo2(), [](ModelConfig& c) { c.window_size = 4; }),
              says("Olmo3ForCausalLM", "--rotary-base-local"));
  EXPECT_THAT(family_refusal(tiny_olmo2(), [](ModelConfig& c) { c.add_qkv_bias = true; }),
              says("Olmo2ForCausalLM", "--add-qkv-bias"));
}

TEST(HfFamily, WhatGemmaAloneHasIsNamed) {
  for (const ModelConfig& config : {tiny_llama(), tiny_gpt2(), tiny_mixtral(), tiny_deepseek(), tiny_olmo2()}) {
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.norm_1p = true; }), HasSubstr("--apply-layernorm-1p"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.scale_embeddings = true; }),
                HasSubstr("--scale-embeddings"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.final_logit_softcapping = 3; }),
                HasSubstr("--final-logit-softcapping"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.attn_logit_softcapping = 3; }),
                HasSubstr("--attn-logit-softcapping"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.query_pre_attn_scalar = 3; }),
                HasSubstr("--query-pre-attn-scalar"));
  }
  for (const ModelConfig& config : {tiny_gemma2(), tiny_gemma3()}) {
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.norm_1p = false; }), HasSubstr("--apply-layernorm-1p"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.scale_embeddings = false; }),
                HasSubstr("--scale-embeddings"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.activation = ActivationKind::kSwiGlu; }),
                HasSubstr("--activation"));
  }
  EXPECT_THAT(family_refusal(tiny_gemma2(), [](ModelConfig& c) { c.local_rope_theta = 20; }),
              says("Gemma2ForCausalLM", "--rotary-base-local"));
  EXPECT_THAT(family_refusal(tiny_gemma3(), [](ModelConfig& c) { c.local_rope_theta = 0; }),
              says("Gemma3ForCausalLM", "--rotary-base-local"));
  EXPECT_THAT(family_refusal(tiny_gemma3(), [](ModelConfig& c) { c.attn_logit_softcapping = 20; }),
              says("Gemma3ForCausalLM", "--attn-logit-softcapping"));
}

TEST(HfFamily, HowBranchesAreAddedIsNamed) {
  for (const ModelConfig& config : {tiny_llama(), tiny_gpt2(), tiny_stablelm(), tiny_deepseek(), tiny_gemma2()}) {
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.residual_form = ResidualForm::kParallel; }),
                HasSubstr("--residual-form"));
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.add_head_bias = true; }), HasSubstr("--add-head-bias"));
  }
  EXPECT_THAT(family_refusal(tiny_gpt2(), [](ModelConfig& c) { c.activation = ActivationKind::kGeluErf; }),
              says("GPT2LMHeadModel", "--activation"));
  EXPECT_THAT(family_refusal(tiny_phi2(), [](ModelConfig& c) { c.add_head_bias = false; }),
              says("PhiForCausalLM", "--add-head-bias"));
  EXPECT_THAT(family_refusal(tiny_gpt_neox(), [](ModelConfig& c) { c.add_head_bias = true; }),
              says("GPTNeoXForCausalLM", "--add-head-bias"));
  EXPECT_THAT(family_refusal(tiny_gpt_neox(), [](ModelConfig& c) { c.num_query_groups = 1; }),
              says("GPTNeoXForCausalLM", "--num-query-groups"));
  EXPECT_THAT(family_refusal(tiny_gpt_neox(), [](ModelConfig& c) { c.add_bias = false; }),
              says("GPTNeoXForCausalLM", "--add-bias-linear"));
}

TEST(HfFamily, LongRopeIsOfPhi3Alone) {
  for (const ModelConfig& config : {tiny_qwen2(), tiny_gemma2(), tiny_gpt_neox(), tiny_olmo2()}) {
    EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.rope_scaling = tiny_long().rope_scaling; }),
                HasSubstr("--rope-scaling-type"));
  }
}

}  // namespace
}  // namespace ranklab
