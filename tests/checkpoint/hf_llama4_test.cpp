// Llama 4: its published configurations, what a file without a key means, rows of heads that are neighbours, and what
// its class cannot express.
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
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

// The text model's keys of huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct (config.json).
Json scout() {
  return Json::parse(R"({"architectures": ["Llama4ForCausalLM"], "attention_bias": false, "attention_chunk_size": 8192,
    "attention_dropout": 0.0, "bos_token_id": 200000, "eos_token_id": [200001, 200007, 200008],
    "for_llm_compressor": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
    "initializer_range": 0.02, "interleave_moe_layer_step": 1, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760, "model_type": "llama4_text",
    "no_rope_layers": [], "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48,
    "num_key_value_heads": 8, "num_local_experts": 16, "output_router_logits": false, "pad_token_id": 200018,
    "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "tie_word_embeddings": false, "use_cache": true,
    "use_qk_norm": true, "vocab_size": 202048})");
}

ModelConfig read(const Json& file) { return read_hf_config(file.dump(), "config.json").model; }

TEST(HfLlama4, ReadsThePublishedConfigurations) {
  ModelConfig want = model_preset("llama4_scout");
  want.seq_length = 10485760;
  want.hf_bos_token = 200000;
  want.hf_eos_tokens = {200001, 200007, 200008};
  want.hf_pad_token = 200018;
  EXPECT_EQ(text_of(read(scout())), text_of(want));
  Json file = scout();
  file["num_local_experts"] = 128;
  file["interleave_moe_layer_step"] = 2;
  file["use_qk_norm"] = false;
  file["rope_scaling"] = nullptr;
  want = model_preset("llama4_maverick");
  want.seq_length = 10485760;
  want.hf_bos_token = 200000;
  want.hf_eos_tokens = {200001, 200007, 200008};
  want.hf_pad_token = 200018;
  EXPECT_EQ(text_of(read(file)), text_of(want));
}

// What transformers takes where a file says less.
TEST(HfLlama4, WhatAFileDoesNotSay) {
  Json file = scout();
  for (const char* key : {"attention_chunk_size", "head_dim", "interleave_moe_layer_step", "intermediate_size",
                          "intermediate_size_mlp", "no_rope_layers", "num_experts_per_tok", "num_local_experts",
                          "rms_norm_eps", "rope_theta", "use_qk_norm", "attention_bias"})
    file.erase(key);
  EXPECT_EQ(text_of(read(file)), text_of(read(scout())));
  file = scout();
  file["attention_chunk_size"] = nullptr;
  file["attn_temperature_tuning"] = false;
  file["no_rope_layers"] = std::vector<int>(48, 1);
  file["moe_layers"] = Json::array();
  const ModelConfig plain = read(file);
  EXPECT_EQ(plain.attention_chunk, 0);
  EXPECT_EQ(plain.query_temperature_scale, 0);
  EXPECT_TRUE(plain.rope_layers.all());
  EXPECT_FALSE(plain.moe.enabled());
  EXPECT_EQ(plain.ffn_hidden_size, 16384);
  file["attn_temperature_tuning"] = 4;  // as files of the first release say it
  EXPECT_EQ(read(file).query_temperature_scale, 0.1);
}

TEST(HfLlama4, WhatRanklabHasNotIsRefusedByItsName) {
  const auto refusal = [](const char* key, const Json& value) {
    Json file = scout();
    file[key] = value;
    return message_of([&] { read(file); });
  };
  EXPECT_THAT(refusal("num_experts_per_tok", 2), HasSubstr("'num_experts_per_tok'"));
  EXPECT_THAT(refusal("attention_chunk_size", 0), HasSubstr("'attention_chunk_size'"));
  EXPECT_THAT(refusal("interleave_moe_layer_step", 0), HasSubstr("'interleave_moe_layer_step'"));
  EXPECT_THAT(refusal("moe_layers", "all"), HasSubstr("'moe_layers'"));
  EXPECT_THAT(refusal("layer_types", std::vector<std::string>(48, "sliding_attention")), HasSubstr("'layer_types'"));
}

TEST(HfLlama4, WhatItCannotExpressIsNamed) {
  const auto refused = [](void (*change)(ModelConfig&), const char* setting) {
    EXPECT_THAT(family_refusal(tiny_llama4(), change), AllOf(HasSubstr("Llama4ForCausalLM"), HasSubstr(setting)));
  };
  refused([](ModelConfig& c) { c.moe.weigh_inputs = false; }, "--moe-apply-probs-on-input");
  refused([](ModelConfig& c) { c.moe.shared_ffn_hidden_size = 10; }, "--moe-shared-expert-intermediate-size");
  refused([](ModelConfig& c) { c.moe.score = RouterScore::kSoftmax; }, "--moe-router-score-function");
  refused([](ModelConfig& c) { c.moe.expert_bias = true; }, "--moe-router-enable-expert-bias");
  refused([](ModelConfig& c) { c.window_size = 3; }, "--window-size");
  refused([](ModelConfig& c) { c.qk_norm = true; }, "--qk-layernorm");
  refused([](ModelConfig& c) { c.norm = NormKind::kLayerNorm; }, "--normalization");
  // Settings that only this class has; no other class drops them silently.
  EXPECT_THAT(family_refusal(tiny_latent(), [](ModelConfig& c) { c.attention_chunk = 4; }),
              AllOf(HasSubstr("Llama4ForCausalLM"), HasSubstr("--kv-lora-rank")));
  EXPECT_THAT(family_refusal(tiny_mixtral(),
                             [](ModelConfig& c) {
                               c.moe.layers = {.pattern = {true, false}};
                             }),
              AllOf(HasSubstr("MixtralForCausalLM"), HasSubstr("--moe-layer-freq")));
  ModelConfig layers = tiny_deepseek();
  layers.num_layers = 4;
  EXPECT_THAT(family_refusal(layers,
                             [](ModelConfig& c) {
                               c.moe.layers = {.pattern = {true, false}};
                             }),
              AllOf(HasSubstr("DeepseekV3ForCausalLM"), HasSubstr("--moe-layer-freq")));
}

// A pattern whose dense layers come first says the same as their number.
TEST(HfLlama4, APatternOfFirstDenseLayersIsTheirNumber) {
  ModelConfig number = tiny_deepseek(), pattern = number;
  number.num_layers = pattern.num_layers = 4;
  number.moe.first_dense_layers = 1;
  pattern.moe.first_dense_layers = 0;
  pattern.moe.layers = {.pattern = {false, true, true, true}};
  EXPECT_EQ(text_of(pattern), text_of(number));
}

// Row 2 i of their head is our row i, row 2 i + 1 our row i + D / 2; values stay. Experts are [in, out] there.
TEST(HfLlama4, RotatedRowsAreNeighbours) {
  const ModelConfig config = tiny_llama4();
  const MemoryTensors ours = counted_weights(config);
  const std::string path = temporary_path("hf_llama4");
  export_hf(ours, config, path, {.durable = false});
  const HfFolder folder(path);
  const int64_t hidden = config.hidden_size, d = config.head_dim(), queries = config.query_width(),
                keys = config.kv_width();
  const std::vector<float> qkv = floats(ours, "weight/layers.1.attention.qkv.weight");
  const auto expect_rows = [&](const std::string& name, int64_t first, int64_t rows, bool turned) {
    const std::vector<float> theirs = floats(folder, "model.layers.1.self_attn." + name + ".weight");
    ASSERT_EQ(theirs.size(), static_cast<size_t>(rows * hidden));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t in_head = row % d, own = turned ? row - in_head + in_head / 2 + in_head % 2 * (d / 2) : row;
      for (int64_t i = 0; i < hidden; ++i)
        EXPECT_EQ(theirs[static_cast<size_t>(row * hidden + i)], qkv[static_cast<size_t>((first + own) * hidden + i)]);
    }
  };
  expect_rows("q_proj", 0, queries, true);
  expect_rows("k_proj", queries, keys, true);
  expect_rows("v_proj", queries + keys, keys, false);
  const int64_t ffn = config.expert_ffn();
  const std::string experts = "model.layers.1.feed_forward.experts.";
  ASSERT_EQ(folder.tensor(experts + "gate_up_proj").shape, (std::vector<int64_t>{3, hidden, 2 * ffn}));
  const std::vector<float> gate_up = floats(ours, "weight/layers.1.mlp.experts.2.gate_up.weight"),
                           their_gate_up = floats(folder, experts + "gate_up_proj");
  for (int64_t row = 0; row < 2 * ffn; ++row)
    for (int64_t i = 0; i < hidden; ++i)
      EXPECT_EQ(their_gate_up[static_cast<size_t>((2 * hidden + i) * 2 * ffn + row)],
                gate_up[static_cast<size_t>(row * hidden + i)]);
  EXPECT_EQ(message_of([&] { folder.tensor("model.layers.0.feed_forward.gate_proj.weight"); }), "");
}

}  // namespace
}  // namespace ranklab
