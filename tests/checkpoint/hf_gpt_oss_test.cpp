// gpt-oss: its published configuration, experts that lie in one tensor with the rows of two halves in turn, and experts
// in MXFP4, made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/checkpoint/hf/mxfp4.h"
#include "core/precision/number_format.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

// The keys of huggingface.co/openai/gpt-oss-20b (raw/main/config.json).
Json published() {
  return Json::parse(R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
    "eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
    "initial_context_length": 4096, "initializer_range": 0.02, "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention",
      "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention",
      "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention",
      "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention",
      "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
    "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
    "output_router_logits": false, "pad_token_id": 199999,
    "quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
      "model.embed_tokens", "lm_head"], "quant_method": "mxfp4"},
    "rms_norm_eps": 1e-05, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
      "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}, "rope_theta": 150000,
    "router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false,
    "transformers_version": "4.55.0.dev0", "use_cache": true, "vocab_size": 201088})");
}

TEST(HfGptOss, ReadsThePublishedConfiguration) {
  const HfConfig read = read_hf_config(published().dump(), "config.json");
  EXPECT_THAT(read.unknown_keys, IsEmpty());
  EXPECT_TRUE(read.mxfp4);
  EXPECT_FALSE(read.fp8);
  EXPECT_EQ(count_model(read.model, 8).total, 20914757184);  // "20B"
  EXPECT_EQ(read.model.window_layers, LayerPattern{.skip_freq = 2});
  EXPECT_EQ(read.model.softmax, SoftmaxKind::kLearnable);
  EXPECT_EQ(read.model.yarn.scaling_factor, 32);
  EXPECT_FALSE(read.model.yarn.truncate);
}

// What transformers takes where a file says less.
TEST(HfGptOss, WhatAFileDoesNotSay) {
  Json file = published();
  for (const char* key : {"layer_types", "rope_scaling", "rope_theta", "sliding_window", "num_experts_per_tok",
                          "quantization_config", "head_dim"})
    file.erase(key);
  const ModelConfig less = read_hf_config(file.dump(), "config.json").model;
  EXPECT_EQ(text_of(less), text_of(read_hf_config(published().dump(), "config.json").model));
  file["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 7.0}};
  const ModelConfig plain = read_hf_config(file.dump(), "config.json").model;
  EXPECT_FALSE(plain.yarn.enabled());
  EXPECT_EQ(plain.rope_theta, 7.0);
  file["swiglu_limit"] = 8.0;
  EXPECT_THAT(message_of([&] { read_hf_config(file.dump(), "config.json"); }), HasSubstr("'swiglu_limit'"));
}

TEST(HfGptOss, WhatItCannotExpressIsNamed) {
  EXPECT_THAT(family_refusal(tiny_gpt_oss(), [](ModelConfig& c) { c.moe.router_bias = false; }),
              AllOf(HasSubstr("GptOssForCausalLM"), HasSubstr("--add-router-bias")));
  EXPECT_THAT(family_refusal(tiny_gpt_oss(), [](ModelConfig& c) { c.activation = ActivationKind::kSwiGlu; }),
              AllOf(HasSubstr("GptOssForCausalLM"), HasSubstr("--activation")));
  EXPECT_THAT(family_refusal(tiny_gpt_oss(), [](ModelConfig& c) { c.softmax = SoftmaxKind::kOffByOne; }),
              HasSubstr("--softmax-type"));
  EXPECT_THAT(family_refusal(tiny_llama(), [](ModelConfig& c) { c.softmax = SoftmaxKind::kLearnable; }),
              AllOf(HasSubstr("LlamaForCausalLM"), HasSubstr("--softmax-type")));
  EXPECT_THAT(family_refusal(tiny_mixtral(), [](ModelConfig& c) { c.moe.router_bias = true; }),
              AllOf(HasSubstr("MixtralForCausalLM"), HasSubstr("--add-router-bias")));
}

// Experts [out, in] of ours are [in, out] there, their gate's row i at 2 i and the other half's at 2 i + 1.
TEST(HfGptOss, RowsOfTheTwoHalvesAreInTurn) {
  const ModelConfig config = tiny_gpt_oss();
  const MemoryTensors ours = counted_weights(config);
  const std::string path = temporary_path("hf_gpt_oss");
  export_hf(ours, config, path, {.durable = false});
  const HfFolder folder(path);
  const int64_t hidden = config.hidden_size, ffn = config.ffn_hidden_size;
  const std::string experts = "model.layers.1.mlp.experts.", mine = "weight/layers.1.mlp.experts.2.";
  ASSERT_EQ(folder.tensor(experts + "gate_up_proj").shape, (std::vector<int64_t>{3, hidden, 2 * ffn}));
  ASSERT_EQ(folder.tensor(experts + "gate_up_proj_bias").shape, (std::vector<int64_t>{3, 2 * ffn}));
  ASSERT_EQ(folder.tensor(experts + "down_proj").shape, (std::vector<int64_t>{3, ffn, hidden}));
  const auto at = [](const std::vector<float>& values, int64_t i) { return values.at(static_cast<size_t>(i)); };
  const std::vector<float> gate_up = floats(ours, mine + "gate_up.weight"), bias = floats(ours, mine + "gate_up.bias"),
                           down = floats(ours, mine + "down.weight");
  const std::vector<float> their_gate_up = floats(folder, experts + "gate_up_proj"),
                           their_bias = floats(folder, experts + "gate_up_proj_bias"),
                           their_down = floats(folder, experts + "down_proj");
  for (int64_t row = 0; row < 2 * ffn; ++row) {
    const int64_t theirs = row < ffn ? 2 * row : 2 * (row - ffn) + 1;
    EXPECT_EQ(at(their_bias, 2 * (2 * ffn) + theirs), at(bias, row));
    for (int64_t i = 0; i < hidden; ++i)
      EXPECT_EQ(at(their_gate_up, (2 * hidden + i) * 2 * ffn + theirs), at(gate_up, row * hidden + i));
  }
  for (int64_t i = 0; i < ffn; ++i)
    for (int64_t row = 0; row < hidden; ++row)
      EXPECT_EQ(at(their_down, (2 * ffn + i) * hidden + row), at(down, row * ffn + i));
  EXPECT_EQ(floats(folder, "model.layers.0.self_attn.sinks"), floats(ours, "weight/layers.0.attention.sinks.weight"));
}

// gpt-oss 120B's experts are 144 parameters a layer and four tensors there: three for all, and 17 for each of 36
// layers.
TEST(HfGptOss, ManyExpertsAreFewTensors) {
  ModelConfig config = tiny_gpt_oss();
  config.num_layers = 36;
  config.moe.num_experts = 128;
  EXPECT_NO_THROW(check_tensor_count(config, &hf_family(config), 3 + 36 * 17, "folder"));
  EXPECT_THROW(check_tensor_count(config, &hf_family(config), 30, "folder"), Error);
  EXPECT_THROW(check_tensor_count(config, nullptr, 3 + 36 * 17, "checkpoint"), Error);
}

// Its balancing loss counts only if the file says that training adds it.
TEST(HfGptOss, ACoefficientAloneAddsNoLoss) {
  EXPECT_EQ(read_hf_config(published().dump(), "config.json").model.moe.aux_loss_coeff, 0);
  Json file = published();
  file["output_router_logits"] = true;
  EXPECT_EQ(read_hf_config(file.dump(), "config.json").model.moe.aux_loss_coeff, 0.9);
}

// One expert of 2 outputs and 32 inputs, and whatever `change` makes of it.
struct Mxfp4 {
  std::vector<int64_t> shape = {1, 2, 1, 16}, scale_shape = {1, 2, 1};
  std::vector<uint8_t> codes = std::vector<uint8_t>(32, 0), scales = {127, 127};
  bool has_blocks = true, has_scales = true;
};
std::string folder_of(const std::string& name, const std::function<void(Mxfp4&)>& change) {
  Mxfp4 experts;
  change(experts);
  Tensors tensors;
  if (experts.has_blocks) tensors.add("x_blocks", TensorType::kU8, experts.shape, experts.codes);
  if (experts.has_scales) tensors.add("x_scales", TensorType::kU8, experts.scale_shape, experts.scales);
  tensors.add("y", TensorType::kF32, {1}, std::vector<float>{3});
  const std::string path = temporary_path("hf_mxfp4_" + name);
  std::filesystem::create_directory(path);
  write_safetensors(path + "/model.safetensors", tensors, {.durable = false});
  return path;
}

double value(const std::vector<std::byte>& bytes, int64_t i) {
  return element_value(TensorType::kBF16, bytes.data() + 2 * i);
}

// Every code, and scales from the smallest on, against the number format of core/precision.
TEST(HfMxfp4, AValueIsItsCodeTimesThePowerOfTwoOfItsBlock) {
  const NumberFormat& e2m1 = find_number_format("e2m1");
  for (const int scale : {0, 1, 120, 127, 130, 251}) {
    const HfFolder folder(folder_of("scale" + std::to_string(scale), [&](Mxfp4& x) {
      x.scales = {static_cast<uint8_t>(scale), 128};
      for (size_t i = 0; i < 8; ++i) x.codes[i] = static_cast<uint8_t>((2 * i) | ((2 * i + 1) << 4U));
      x.codes[16] = 0x20;  // the second output's second input is 1
    }));
    const HfMxfp4 weights(folder);
    EXPECT_EQ(weights.quantized(), 1u);
    ASSERT_EQ(weights.tensor("x").shape, (std::vector<int64_t>{1, 32, 2}));
    const std::vector<std::byte> x = weights.read("x");
    for (int code = 0; code < 16; ++code) {
      const double want = std::ldexp(decode(e2m1, static_cast<uint8_t>(code)), scale - 127);
      EXPECT_EQ(value(x, 2 * code), want) << "code " << code << ", scale " << scale;
    }
    EXPECT_EQ(value(x, 2 * 1 + 1), 2.0);
    EXPECT_EQ(value(x, 2 * 0 + 1), 0.0);
    EXPECT_EQ(weights.read_slice("x", 0), x);
    EXPECT_EQ(floats(weights, "y"), (std::vector<float>{3}));
  }
}

TEST(HfMxfp4, WhatDoesNotBelongTogetherIsNamed) {
  const auto refused = [](const std::string& name, const std::function<void(Mxfp4&)>& change) {
    const std::string path = folder_of(name, change);
    return message_of([&] {
      const HfFolder folder(path);
      HfMxfp4(folder).read("x");
    });
  };
  EXPECT_THAT(refused("no_scales", [](Mxfp4& x) { x.has_scales = false; }),
              AllOf(HasSubstr("x_blocks"), HasSubstr("lacks its scales"), HasSubstr("x_scales")));
  EXPECT_THAT(refused("no_blocks", [](Mxfp4& x) { x.has_blocks = false; }),
              AllOf(HasSubstr("x_scales"), HasSubstr("belong to no MXFP4 blocks")));
  EXPECT_THAT(refused("shape",
                      [](Mxfp4& x) {
                        x.scale_shape = {2, 1, 1};
                      }),
              AllOf(HasSubstr("x_blocks"), HasSubstr("[2, 1, 1]"), HasSubstr("[1, 2, 1]")));
  EXPECT_THAT(refused("width",
                      [](Mxfp4& x) {
                        x.shape = {1, 2, 2, 8};
                      }),
              AllOf(HasSubstr("x_blocks"), HasSubstr("[1, 2, 2, 8]")));
  EXPECT_THAT(refused("empty",
                      [](Mxfp4& x) {
                        x.shape = {0, 2, 1, 16}, x.scale_shape = {0, 2, 1};
                        x.codes.clear(), x.scales.clear();
                      }),
              AllOf(HasSubstr("x_blocks"), HasSubstr("[0, 2, 1, 16]")));
  EXPECT_THAT(refused("infinite", [](Mxfp4& x) { x.scales[1] = 254, x.codes[16] = 0x07; }), HasSubstr("scale 254"));
  EXPECT_THAT(refused("nan", [](Mxfp4& x) { x.scales[1] = 255; }), AllOf(HasSubstr("NaN"), HasSubstr("x_scales")));
}

TEST(HfMxfp4, OtherWaysToQuantizeAreRefusedByTheirKey) {
  Json file = published();
  file["quantization_config"]["bits"] = 4;
  EXPECT_THAT(message_of([&] { read_hf_config(file.dump(), "config.json"); }), HasSubstr("quantization_config.bits"));
}

}  // namespace
}  // namespace ranklab
