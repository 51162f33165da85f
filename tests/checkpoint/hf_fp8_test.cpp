// Folders of FP8 matrices, made by hand: each value is its code times the scale of its block, and what does not fit is
// rejected by name.
#include "core/checkpoint/hf/fp8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/precision/number_format.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string kName = "model.layers.1.self_attn.q_proj.weight";
const HfFp8 kBlocks{.block_rows = 3, .block_columns = 4};
constexpr uint8_t kOne = 0x38, kNan = 0x7f;  // of E4M3

// The weights of a tiny Llama, every matrix of a layer in codes with a scale of 2 for each block. `change` may replace
// a tensor's codes or scales, or leave a tensor out by answering false.
struct Fp8Tensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<uint8_t> codes;
  std::vector<int64_t> scale_shape;
  std::vector<float> scales;
  bool has_codes = true, has_scales = true;
};
using Change = std::function<void(Fp8Tensor&)>;

Fp8Tensor quantized(const TensorInfo& tensor) {
  const int64_t down = (tensor.shape[0] + kBlocks.block_rows - 1) / kBlocks.block_rows;
  const int64_t across = (tensor.shape[1] + kBlocks.block_columns - 1) / kBlocks.block_columns;
  return {.name = tensor.name,
          .shape = tensor.shape,
          .codes = std::vector<uint8_t>(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]), kOne),
          .scale_shape = {down, across},
          .scales = std::vector<float>(static_cast<size_t>(down * across), 2.0F)};
}

std::string folder_of(const Change& change, const std::string& name, const Json& more = {}) {
  const ModelConfig config = tiny_llama();
  const std::string path = temporary_path("hf_fp8_" + name);
  export_hf(counted_weights(config), config, path, {.durable = false});
  const HfFolder folder(path);
  Tensors tensors;
  for (const TensorInfo& tensor : folder.tensors()) {
    if (!tensor.name.starts_with("model.layers.") || tensor.shape.size() != 2) {
      tensors.add(tensor.name, tensor.type, tensor.shape, floats(folder, tensor.name));
      continue;
    }
    Fp8Tensor fp8 = quantized(tensor);
    change(fp8);
    if (fp8.has_codes) tensors.add(fp8.name, TensorType::kF8E4M3, fp8.shape, fp8.codes);
    if (fp8.has_scales) tensors.add(fp8.name + "_scale_inv", TensorType::kF32, fp8.scale_shape, fp8.scales);
  }
  write_safetensors(path + "/model.safetensors", tensors, {.durable = false});
  Json file = Json::parse(bytes_of(path + "/config.json"));
  file["quantization_config"] = {{"quant_method", "fp8"},
                                 {"fmt", "e4m3"},
                                 {"activation_scheme", "dynamic"},
                                 {"weight_block_size", {kBlocks.block_rows, kBlocks.block_columns}},
                                 {"modules_to_not_convert", {"lm_head"}}};
  for (const auto& [key, value] : more.items()) file["quantization_config"][key] = value;
  put_bytes(path + "/config.json", file.dump());
  return path;
}

std::string refused(const Change& change, const std::string& name, const Json& more = {}) {
  const std::string path = folder_of(change, name, more);
  return message_of([&] {
    const HfModel model(path);
    for (const TensorInfo& tensor : model.tensors()) model.read(tensor.name);
  });
}

Change of_one(const std::function<void(Fp8Tensor&)>& change) {
  return [change](Fp8Tensor& tensor) {
    if (tensor.name == kName) change(tensor);
  };
}

// The decoder of files and that of core/precision were written independently.
TEST(HfFp8, CodesAreThoseOfTheNumberFormat) {
  const NumberFormat& e4m3 = find_number_format("e4m3");
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::byte>(code);
    const double value = element_value(TensorType::kF8E4M3, &byte), want = decode(e4m3, static_cast<uint8_t>(code));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, want) << code;
    }
  }
}

// 8 rows of 8 in blocks of 3 x 4: the last row of blocks has two rows.
TEST(HfFp8, AValueIsItsCodeTimesTheScaleOfItsBlock) {
  const std::string path = folder_of(of_one([](Fp8Tensor& t) {
                                       ASSERT_EQ(t.scale_shape, (std::vector<int64_t>{3, 2}));
                                       t.scales = {1.0F, 0.5F, 3.0F, 0.1F, 1e-6F, 7.0F};
                                       t.codes[0] = 0x7e;          // 448, the largest
                                       t.codes[2 * 8 + 4] = 0xb8;  // -1, of block [0, 1]
                                       t.codes[3 * 8 + 7] = 0x01;  // 2^-9, the smallest, of block [1, 1]
                                       t.codes[5 * 8 + 3] = 0x41;  // 2.25, of block [1, 0]
                                       t.codes[7 * 8 + 7] = 0x80;  // -0
                                     }),
                                     "values");
  const HfModel model(path);
  const std::vector<float> q = floats(model, "weight/layers.1.attention.qkv.weight");  // q_proj are its first 8 rows
  EXPECT_EQ(q[0], 448.0F);
  EXPECT_EQ(q[1], 1.0F);
  EXPECT_EQ(q[2 * 8 + 3], 1.0F);
  EXPECT_EQ(q[2 * 8 + 4], -0.5F);
  EXPECT_EQ(q[3 * 8 + 0], 3.0F);
  EXPECT_EQ(q[3 * 8 + 7], 0.1F / 512.0F);
  EXPECT_EQ(q[5 * 8 + 3], 6.75F);
  EXPECT_EQ(q[6 * 8 + 3], 1e-6F);
  EXPECT_EQ(q[7 * 8 + 4], 7.0F);
  EXPECT_TRUE(q[7 * 8 + 7] == 0 && std::signbit(q[7 * 8 + 7]));
  EXPECT_EQ(q[8 * 8], 2.0F);  // of k_proj
  EXPECT_EQ(floats(model, "weight/head.weight"), floats(counted_weights(tiny_llama()), "weight/head.weight"));
  EXPECT_THAT(model.notes(), ElementsAre(AllOf(HasSubstr("14 matrices are FP8"), HasSubstr("3 x 4"))));
}

// As Qwen3's are published.
TEST(HfFp8, ScalesOf16BitsAreTakenAsTheyAre) {
  const std::string path = temporary_path("hf_fp8_half.safetensors");
  Tensors tensors;
  tensors.add("w", TensorType::kF8E4M3, {2, 5}, std::vector<uint8_t>(10, kOne));
  tensors.add("w_scale_inv", TensorType::kBF16, {1, 2}, std::vector<uint16_t>{0x3f00, 0x4040});  // 0.5, 3
  std::filesystem::create_directory(path);
  write_safetensors(path + "/model.safetensors", tensors, {.durable = false});
  const HfFolder folder(path);
  const HfDequantized weights(folder, kBlocks);
  EXPECT_EQ(weights.matrices(), 1u);
  ASSERT_EQ(weights.tensors().size(), 1u);
  EXPECT_EQ(floats(weights, "w"), (std::vector<float>{0.5, 0.5, 0.5, 0.5, 3, 0.5, 0.5, 0.5, 0.5, 3}));
}

TEST(HfFp8, ScalesAndMatricesThatDoNotBelongTogetherAreNamed) {
  EXPECT_THAT(refused(of_one([](Fp8Tensor& t) { t.has_scales = false; }), "no_scale"),
              AllOf(HasSubstr("lacks its scales"), HasSubstr(kName + "_scale_inv")));
  EXPECT_THAT(refused(of_one([](Fp8Tensor& t) {
                        t.scale_shape = {2, 3};
                      }),
                      "shape"),
              AllOf(HasSubstr(kName + "_scale_inv"), HasSubstr("[2, 3]"), HasSubstr("[3, 2]")));
  EXPECT_THAT(refused(of_one([](Fp8Tensor& t) { t.has_codes = false; }), "no_codes"),
              AllOf(HasSubstr(kName + "_scale_inv"), HasSubstr("belong to no FP8 matrix")));
  EXPECT_THAT(refused(of_one([](Fp8Tensor& t) { t.shape = {64}; }), "vector"),
              AllOf(HasSubstr(kName), HasSubstr("not a matrix")));
  EXPECT_THAT(refused(of_one([](Fp8Tensor& t) {
                        t.shape = {4, 16}, t.scale_shape = {2, 4}, t.scales.resize(8, 1);
                      }),
                      "matrix_shape"),
              AllOf(HasSubstr(kName), HasSubstr("[4, 16]"), HasSubstr("[8, 8]")));
}

TEST(HfFp8, NumbersThatAreNoneAreNamedWithTheirBlock) {
  EXPECT_THAT(refused(of_one([](Fp8Tensor& t) { t.codes[4 * 8 + 5] = kNan; }), "nan"),
              AllOf(HasSubstr("a NaN"), HasSubstr(kName), HasSubstr("block [1, 1]"), HasSubstr("0x7f")));
  const std::vector<std::pair<float, std::string>> scales = {{0.0F, "0"},
                                                             {-2.0F, "-2"},
                                                             {std::numeric_limits<float>::quiet_NaN(), "nan"},
                                                             {std::numeric_limits<float>::infinity(), "inf"},
                                                             {1e37F, "1e+37"}};
  for (const auto& [scale, text] : scales) {
    const float value = scale;
    EXPECT_THAT(
        refused(of_one([value](Fp8Tensor& t) { t.scales[4] = value; }), "scale_" + text),
        AllOf(HasSubstr("scale out of range"), HasSubstr(kName), HasSubstr("block [2, 0]"), HasSubstr("got " + text)));
  }
}

// huggingface.co/deepseek-ai/DeepSeek-V3/raw/main/config.json has this.
TEST(HfFp8, ThePublishedOneIsRead) {
  const auto fp8 = read_hf_fp8(HfJson::parse(R"({"quantization_config": {"activation_scheme": "dynamic",
    "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}})"),
                               "config.json");
  ASSERT_TRUE(fp8.has_value());
  EXPECT_EQ(fp8->block_rows, 128);
  EXPECT_EQ(fp8->block_columns, 128);
  EXPECT_FALSE(read_hf_fp8(HfJson::parse("{}"), "config.json").has_value());
}

TEST(HfFp8, OtherQuantizationsAreRefusedByTheirKey) {
  const std::vector<std::tuple<std::string, Json, std::string>> cases = {
      {"quant_method", "gptq", "gptq"},
      {"quant_method", nullptr, "quantization_config.quant_method"},
      {"fmt", "e5m2", "e5m2"},
      {"activation_scheme", "static", "quantization_config.activation_scheme"},
      {"expert_dtype", "fp4", "quantization_config.expert_dtype"},
      {"weight_block_size", nullptr, "quantization_config.weight_block_size"},
      {"weight_block_size", {128}, "quantization_config.weight_block_size"},
      {"weight_block_size", {0, 128}, "quantization_config.weight_block_size"},
      {"weight_block_size", {128, 1.5}, "quantization_config.weight_block_size"},
      {"weight_block_size", {128, 1 << 21}, "quantization_config.weight_block_size"},
      {"group_size", 64, "quantization_config.group_size"}};
  for (const auto& [key, value, words] : cases) {
    EXPECT_THAT(refused([](Fp8Tensor&) {}, "config", {{key, value}}), AllOf(HasSubstr("config.json"), HasSubstr(words)))
        << key << " " << value;
    std::filesystem::remove_all(temporary_path("hf_fp8_config"));
  }
  EXPECT_EQ(refused([](Fp8Tensor&) {}, "known", {{"scale_fmt", "ue8m0"}}), "");
}

// Without the key, codes are not taken for weights.
TEST(HfFp8, CodesThatTheConfigurationDoesNotSpeakOfAreNoWeights) {
  const std::string path = folder_of([](Fp8Tensor&) {}, "silent");
  Json file = Json::parse(bytes_of(path + "/config.json"));
  file.erase("quantization_config");
  put_bytes(path + "/config.json", file.dump());
  EXPECT_THAT(message_of([&] { HfModel model(path); }), HasSubstr("F8_E4M3"));
}

}  // namespace
}  // namespace ranklab
