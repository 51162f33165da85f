// Qwen3-Next and Qwen3.5: a published configuration, what a file without a key means, how their rows lie, tensors that
// nobody reads, and what the classes cannot express.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/presets.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct (config.json)
Json qwen3_next_80b() {
  return Json::parse(R"({"architectures": ["Qwen3NextForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "full_attention_interval": 4,
    "head_dim": 256, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "linear_value_head_dim": 128, "max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_next",
    "moe_intermediate_size": 512, "norm_topk_prob": true, "num_attention_heads": 16, "num_experts": 512,
    "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2, "output_router_logits": false,
    "partial_rotary_factor": 0.25, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000000,
    "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 512, "tie_word_embeddings": false,
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
}

ModelConfig read_hybrid(const Json& file) { return read_hf_config(file.dump(), "config.json").model; }

TEST(HfQwenHybrid, ReadsThePublishedConfiguration) {
  ModelConfig want = model_preset("qwen3_next_80b_a3b");
  want.seq_length = 262144;
  want.hf_bos_token = 151643;
  want.hf_eos_tokens = {151645};
  EXPECT_EQ(text_of(read_hybrid(qwen3_next_80b())), text_of(want));
}

TEST(HfQwenHybrid, WhatAFileDoesNotSay) {
  Json file = qwen3_next_80b();
  for (const char* key : {"full_attention_interval", "head_dim", "linear_conv_kernel_dim", "linear_key_head_dim",
                          "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim", "norm_topk_prob",
                          "partial_rotary_factor", "rms_norm_eps", "attention_bias", "mlp_only_layers"})
    file.erase(key);
  EXPECT_EQ(text_of(read_hybrid(file)), text_of(read_hybrid(qwen3_next_80b())));
  file["full_attention_interval"] = 3;
  EXPECT_EQ(read_hybrid(file).linear.layers, (LayerPattern{.skip_freq = 3}));
  file["layer_types"] = std::vector<std::string>(48, "full_attention");
  EXPECT_FALSE(read_hybrid(file).linear.enabled());
}

TEST(HfQwenHybrid, WhatRanklabHasNotIsRefusedByItsName) {
  const auto refusal = [](const char* key, const Json& value) {
    Json file = qwen3_next_80b();
    file[key] = value;
    return message_of([&] { read_hybrid(file); });
  };
  EXPECT_THAT(refusal("full_attention_interval", 0), HasSubstr("'full_attention_interval'"));
  EXPECT_THAT(refusal("layer_types", std::vector<std::string>(48, "sliding_attention")), HasSubstr("'layer_types'"));
  EXPECT_THAT(refusal("layer_types", std::vector<std::string>(47, "linear_attention")), HasSubstr("'layer_types'"));
  EXPECT_THAT(refusal("linear_num_value_heads", 24), HasSubstr("--linear-num-value-heads"));
  EXPECT_THAT(refusal("linear_conv_kernel_dim", 0), HasSubstr("--linear-conv-kernel-dim"));
  EXPECT_THAT(refusal("hidden_act", "gelu"), HasSubstr("'hidden_act'"));
}

TEST(HfQwenHybrid, WhatTheyCannotExpressIsNamed) {
  const auto refused = [](void (*change)(ModelConfig&), const char* setting) {
    EXPECT_THAT(family_refusal(tiny_qwen3_next(), change), AllOf(HasSubstr("Qwen3Next"), HasSubstr(setting)));
    if (std::string(setting).starts_with("--moe")) return;
    EXPECT_THAT(family_refusal(tiny_qwen3_5(), change), AllOf(HasSubstr("Qwen3_5"), HasSubstr(setting)));
  };
  refused([](ModelConfig& c) { c.norm_1p = false; }, "--apply-layernorm-1p");
  refused([](ModelConfig& c) { c.qk_norm = false; }, "--qk-layernorm");
  refused([](ModelConfig& c) { c.attention_output_gate = false; }, "--attention-output-gate");
  refused([](ModelConfig& c) { c.window_size = 3; }, "--window-size");
  refused([](ModelConfig& c) { c.mtp_num_layers = 1; }, "--mtp-num-layers");
  refused([](ModelConfig& c) { c.moe.shared_gate = false; }, "--moe-shared-expert-gate");
  // Settings that only these classes have; no other class drops them silently.
  EXPECT_THAT(
      family_refusal(tiny_latent(), [](ModelConfig& c) { c.linear.kind = LinearAttentionKind::kGatedDeltaNet; }),
      HasSubstr("Qwen3_5ForCausalLM"));
  EXPECT_THAT(family_refusal(tiny_llama(), [](ModelConfig& c) { c.attention_output_gate = true; }),
              HasSubstr("--apply-layernorm-1p"));
}

// Their row of a matrix whose parts lie head by head, as ours: the h-th share of each part.
void expect_rows(const std::vector<float>& theirs, const std::vector<float>& ours, const std::vector<int64_t>& own_rows,
                 int64_t columns) {
  ASSERT_EQ(theirs.size(), own_rows.size() * static_cast<size_t>(columns));
  for (size_t row = 0; row < own_rows.size(); ++row)
    for (int64_t i = 0; i < columns; ++i)
      EXPECT_EQ(theirs[row * static_cast<size_t>(columns) + static_cast<size_t>(i)],
                ours[static_cast<size_t>(own_rows[row] * columns + i)])
          << row;
}

TEST(HfQwenHybrid, RowsLieHeadByHead) {
  const ModelConfig c = tiny_qwen3_next();
  const MemoryTensors ours = counted_weights(c);
  const std::string path = temporary_path("hf_qwen3_next");
  export_hf(ours, c, path, {.durable = false});
  const HfFolder folder(path);
  const std::string linear = "model.layers.0.linear_attn.", softmax = "model.layers.1.self_attn.";
  const std::vector<float> in_proj = floats(ours, "weight/layers.0.attention.in_proj.weight");
  // 2 key heads of 3, 4 value heads of 2: blocks of 6, 6, 8 (v), 8 (z), 4 (b), 4 (a) rows.
  expect_rows(floats(folder, linear + "in_proj_qkvz.weight"), in_proj,
              {0, 1, 2, 6, 7, 8, 12, 13, 14, 15, 20, 21, 22, 23, 3, 4, 5, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27},
              c.hidden_size);
  expect_rows(floats(folder, linear + "in_proj_ba.weight"), in_proj, {28, 29, 32, 33, 30, 31, 34, 35}, c.hidden_size);
  EXPECT_EQ(floats(folder, linear + "conv1d.weight"), floats(ours, "weight/layers.0.attention.conv.weight"));
  EXPECT_EQ(folder.tensor(linear + "conv1d.weight").shape, (std::vector<int64_t>{20, 1, 4}));
  EXPECT_EQ(floats(folder, linear + "A_log"), floats(ours, "weight/layers.0.attention.a_log.weight"));
  EXPECT_EQ(floats(folder, linear + "dt_bias"), floats(ours, "weight/layers.0.attention.dt_bias.weight"));
  EXPECT_EQ(floats(folder, linear + "norm.weight"), floats(ours, "weight/layers.0.attention.out_norm.weight"));
  // 2 heads of 8, of which 4 turn: theirs has the turning rows of each query first, then the rest, then its gate.
  std::vector<int64_t> rows;
  for (const int64_t head : {0, 8}) {
    for (const int64_t in_head : {0, 1, 4, 5, 2, 3, 6, 7}) rows.push_back(head + in_head);
    for (int64_t in_head = 0; in_head < 8; ++in_head) rows.push_back(16 + head + in_head);
  }
  expect_rows(floats(folder, softmax + "q_proj.weight"), floats(ours, "weight/layers.1.attention.qkv.weight"), rows,
              c.hidden_size);
}

std::string folder_with(const std::string& name, const std::vector<std::string>& more) {
  const ModelConfig c = tiny_qwen3_5();
  const std::string path = temporary_path(name);
  export_hf(counted_weights(c), c, path, {.durable = false});
  Tensors tensors;
  {
    const HfFolder from(path);
    for (const TensorInfo& tensor : from.tensors())
      tensors.add(tensor.name, tensor.type, tensor.shape, floats(from, tensor.name));
  }
  for (const std::string& other : more) tensors.add(other, TensorType::kF32, {2}, std::vector<float>{1, 2});
  write_safetensors(path + "/model.safetensors", tensors, {});
  return path;
}

TEST(HfQwenHybrid, TensorsThatNoClassReadsAreToldAndPassedOver) {
  const HfModel model(folder_with("hf_qwen3_5", {"mtp.fc.weight", "mtp.norm.weight"}));
  EXPECT_THAT(model.notes(), ElementsAre("2 tensors mtp.* are ignored, as in Qwen3_5ForCausalLM"));
  EXPECT_THAT(message_of([] { const HfModel more(folder_with("hf_qwen3_5_more", {"model.mtp.weight"})); }),
              HasSubstr("model.mtp.weight"));
}

// Experts that transformers wrote one by one; published files have those of a layer in one tensor.
TEST(HfQwenHybrid, ExpertsMayLieInTensorsOfTheirOwn) {
  const ModelConfig c = tiny_qwen3_5_moe();
  const MemoryTensors ours = counted_weights(c);
  const std::string path = temporary_path("hf_qwen3_5_moe_apart");
  export_hf(ours, c, path, {.durable = false});
  Tensors tensors;
  {
    const HfFolder from(path);
    for (const TensorInfo& tensor : from.tensors()) {
      const std::vector<float> values = floats(from, tensor.name);
      const size_t place = tensor.name.find("experts.");
      if (place == std::string::npos) {
        tensors.add(tensor.name, tensor.type, tensor.shape, values);
        continue;
      }
      const bool fused = tensor.name.ends_with("gate_up_proj");
      const std::string before = tensor.name.substr(0, place) + "experts.";
      const int64_t rows = tensor.shape[1] / (fused ? 2 : 1), columns = tensor.shape[2];
      auto next = values.begin();
      for (int64_t expert = 0; expert < tensor.shape[0]; ++expert) {
        for (const char* kind : fused ? std::vector<const char*>{"gate", "up"} : std::vector<const char*>{"down"}) {
          const auto end = next + rows * columns;
          tensors.add(before + std::to_string(expert) + "." + kind + "_proj.weight", tensor.type, {rows, columns},
                      std::vector<float>(next, end));
          next = end;
        }
      }
    }
  }
  write_safetensors(path + "/model.safetensors", tensors, {});
  const HfModel model(path);
  for (const TensorInfo& tensor : model.tensors())
    EXPECT_EQ(floats(model, tensor.name), floats(ours, tensor.name)) << tensor.name;
  EXPECT_THAT(model.notes(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace ranklab
