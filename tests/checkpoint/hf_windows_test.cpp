// Which layers have a window: how the classes of transformers read a config.json, each by its own rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/checkpoint/hf/config.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const char *const kNear = "sliding_attention", *const kAll = "full_attention";

// The windows of all layers, in their order.
std::vector<int64_t> windows_of(const ModelConfig& config) {
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) windows.push_back(config.window_of_layer(layer));
  return windows;
}

TEST(HfWindows, OfQwen3MoeAreInAllLayersWhateverTheFileSays) {
  ModelConfig config = tiny_qwen3_moe();
  config.window_size = 6;
  EXPECT_FALSE(Json::parse(text_of(config)).contains("layer_types"));
  const std::vector<int64_t> both = {6, 6};
  EXPECT_EQ(windows_of(read_edited(config, [](Json&) {})), both);
  EXPECT_EQ(windows_of(read_edited(config, [](Json& file) { file["max_window_layers"] = 28; })), both);
  EXPECT_EQ(windows_of(read_edited(config, [](Json& file) { file["layer_types"] = {kNear, kNear}; })), both);
  const auto refusal = [&](const ModelConfig& model, const Json& types) {
    return message_of([&] { read_edited(model, [&](Json& file) { file["layer_types"] = types; }); });
  };
  EXPECT_THAT(refusal(config, {kNear, kAll}), HasSubstr("does not read this list"));
  EXPECT_THAT(refusal(config, {kAll, kAll}), HasSubstr("does not read this list"));
  EXPECT_THAT(refusal(config, "sliding_attention"), HasSubstr("'layer_types'"));
  EXPECT_THAT(refusal(tiny_qwen3_moe(), {kNear, kNear}), HasSubstr("does not read this list"));
  EXPECT_EQ(refusal(tiny_qwen3_moe(), {kAll, kAll}), "");
  EXPECT_THAT(family_refusal(config, [](ModelConfig& c) { c.window_layers = {.skip_freq = 2}; }),
              says("Qwen3MoeForCausalLM", "--window-attn-skip-freq"));
}

TEST(HfWindows, OfQwen2MoeAreInEveryOtherLayerWithoutAList) {
  ModelConfig config = tiny_qwen2_moe();
  config.num_layers = 5;
  config.window_size = 6;
  EXPECT_EQ(Json::parse(text_of(config))["layer_types"], Json({kNear, kNear, kNear, kNear, kNear}));
  EXPECT_EQ(windows_of(read_edited(config, [](Json&) {})), (std::vector<int64_t>{6, 6, 6, 6, 6}));
  const auto without = [&](const Json& max_window_layers) {
    return windows_of(read_edited(config, [&](Json& file) {
      file.erase("layer_types");
      file.erase("max_window_layers");
      if (!max_window_layers.is_null()) file["max_window_layers"] = max_window_layers;
    }));
  };
  EXPECT_EQ(without(nullptr), (std::vector<int64_t>{6, 0, 6, 0, 6}));  // 28
  EXPECT_EQ(without(4), (std::vector<int64_t>{6, 0, 6, 0, 0}));
  EXPECT_EQ(without(0), (std::vector<int64_t>{0, 0, 0, 0, 0}));
  config.window_size = 0;
  EXPECT_EQ(Json::parse(text_of(config))["layer_types"][0], kAll);
}

// Gemma3TextConfig reads "sliding_window_pattern", and writes the other name beside its list of layers.
TEST(HfWindows, OfGemma3ArePatternedByOneOfTwoNames) {
  ModelConfig config = tiny_gemma3();
  config.num_layers = 6;
  const auto patterns = [&](const Json& read, const Json& unread) {
    Json file = Json::parse(text_of(config));
    file.erase("layer_types");
    file["sliding_window_pattern"] = read;
    file["_sliding_window_pattern"] = unread;
    const HfConfig got = read_hf_config(file.dump(), "config.json");
    EXPECT_TRUE(got.unknown_keys.empty());
    return windows_of(got.model);
  };
  EXPECT_EQ(patterns(3, 2), (std::vector<int64_t>{5, 5, 0, 5, 5, 0}));
  EXPECT_EQ(patterns(nullptr, 2), (std::vector<int64_t>{5, 5, 5, 5, 5, 0}));
}

// Their classes make the mask of a window in any case, and fail where the size is null.
TEST(HfWindows, ThatNoLayerHasAreWrittenAsANumber) {
  ModelConfig olmo = tiny_olmo2();
  olmo.hf_architecture = "Olmo3ForCausalLM";
  for (ModelConfig config : {tiny_gemma2(), tiny_gemma3(), olmo}) {
    config.window_size = 0;
    config.window_layers = {};
    const std::string text = text_of(config);
    EXPECT_EQ(Json::parse(text)["sliding_window"], 4096);
    EXPECT_EQ(Json::parse(text)["layer_types"], Json({kAll, kAll}));
    const HfConfig read = read_hf_config(text, "config.json");
    EXPECT_EQ(read.family.architecture, hf_family(config).architecture);
    EXPECT_EQ(read.model.window_size, 0);
    EXPECT_EQ(text_of(read.model), text);
  }
}

TEST(HfWindows, OfOlmo3MayBeInNoLayer) {
  const ModelConfig read = read_edited(tiny_olmo3(), [](Json& file) { file["layer_types"] = {kAll, kAll}; });
  EXPECT_EQ(read.window_size, 0);
  EXPECT_EQ(hf_family(read).architecture, "Olmo3ForCausalLM");
  ModelConfig other = read;
  other.hf_architecture = "auto";
  EXPECT_EQ(hf_family(other).architecture, "Olmo2ForCausalLM");
}

}  // namespace
}  // namespace ranklab
