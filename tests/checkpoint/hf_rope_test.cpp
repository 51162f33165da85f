// Rotary positions in a config.json: which key a class of transformers reads, and the forms in which it would read
// something other than what the file seems to say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string refused_after(const ModelConfig& config, const JsonEdit& change) {
  return message_of([&] { read_edited(config, change); });
}

// transformers 5.24 takes rope_scaling where both are there.
TEST(HfRope, TwoFormsThatDifferAreRefused) {
  const Json linear = {{"rope_type", "linear"}, {"factor", 4.0}};
  const auto with = [&](const Json& parameters) {
    return [&linear, parameters](Json& file) {
      file["rope_scaling"] = linear;
      file["rope_parameters"] = parameters;
    };
  };
  const char* words = "'rope_scaling'";
  EXPECT_THAT(refused_after(tiny_llama(), with({{"rope_type", "default"}, {"rope_theta", 500.0}})), HasSubstr(words));
  EXPECT_THAT(refused_after(tiny_llama(), with({{"rope_type", "linear"}, {"factor", 2.0}})), HasSubstr(words));
  EXPECT_THAT(refused_after(tiny_llama(), with({{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 7.0}})),
              HasSubstr(words));
  EXPECT_EQ(refused_after(tiny_llama(), with({{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500.0}})), "");
  EXPECT_EQ(refused_after(tiny_llama(), with(Json::object())), "");
  EXPECT_EQ(read_edited(tiny_llama(), with(nullptr)).rope_scaling.factor, 4);
  const auto other_factor = [](Json& file) { file["rope_parameters"]["full_attention"]["factor"] = 8.0; };
  EXPECT_THAT(refused_after(tiny_gemma3(), other_factor), HasSubstr(words));
}

TEST(HfRope, AnObjectForEachKindOfLayerIsOfTwoClassesAlone) {
  const Json plain = {{"rope_type", "default"}, {"rope_theta", 500.0}};
  const auto form = [](const char* key, const Json& value) {
    return [key, value](Json& file) {
      file.erase("rope_scaling");
      file.erase("rope_parameters");
      file[key] = value;
    };
  };
  for (const ModelConfig& config : {tiny_llama(), tiny_qwen2_window(), tiny_gemma2(), tiny_gpt_oss_plain()})
    EXPECT_THAT(refused_after(config, form("rope_parameters", {{"full_attention", plain}})),
                HasSubstr("'rope_parameters.full_attention'"));
  for (const ModelConfig& config : {tiny_gemma3(), tiny_olmo3()}) {
    EXPECT_THAT(refused_after(config, form("rope_parameters", plain)), HasSubstr("'rope_parameters.rope_type'"));
    EXPECT_THAT(refused_after(config, form("rope_scaling", {{"full_attention", plain}})),
                HasSubstr("'rope_scaling.full_attention'"));
    EXPECT_THAT(refused_after(config, [](Json& file) { file["rope_parameters"]["truncate"] = false; }),
                HasSubstr("'rope_parameters.truncate'"));
    EXPECT_THAT(refused_after(config, form("rope_parameters", {{"full_attention", "plain"}})),
                HasSubstr("'rope_parameters.full_attention'"));
    EXPECT_EQ(refused_after(config, form("rope_parameters", {{"full_attention", plain}})), "");
  }
}

// Their classes look for "truncate" in the object around those of the kinds of layers.
TEST(HfRope, WholePairsCannotBeSwitchedOffInOneKindOfLayers) {
  ModelConfig gemma = tiny_gemma3();
  gemma.rope_scaling = {};
  gemma.yarn = tiny_olmo3().yarn;
  for (ModelConfig config : {tiny_olmo3(), gemma}) {
    EXPECT_EQ(message_of([&] { hf_family(config); }), "");
    const auto inner = [](Json& file) {
      file.erase("rope_scaling");
      file["rope_parameters"]["full_attention"]["truncate"] = false;
    };
    EXPECT_THAT(refused_after(config, inner), HasSubstr("--yarn-truncate"));
    config.yarn.truncate = false;
    EXPECT_THAT(message_of([&] { hf_family(config); }), HasSubstr("--yarn-truncate"));
  }
}

TEST(HfRope, WithKindsOfLayersTheOriginalLengthIsTheOneInside) {
  const auto outside = [](int64_t length) {
    return [length](Json& file) { file["original_max_position_embeddings"] = length; };
  };
  EXPECT_THAT(refused_after(tiny_olmo3(), outside(10)), HasSubstr("'original_max_position_embeddings'"));
  EXPECT_EQ(refused_after(tiny_olmo3(), outside(4)), "");
}

TEST(HfRope, OfPhi3TheFactorIsTheRatioOfTheLengths) {
  const auto factor = [](double value) { return [value](Json& file) { file["rope_scaling"]["factor"] = value; }; };
  EXPECT_THAT(refused_after(tiny_long(), factor(16)), HasSubstr("'rope_scaling.factor'"));
  EXPECT_EQ(read_edited(tiny_long(), factor(4)).rope_scaling, tiny_long().rope_scaling);
  const auto both = [&](Json& file) {
    factor(16)(file);
    file["rope_scaling"]["attention_factor"] = 1.5;  // for which the factor alone is used
  };
  EXPECT_EQ(read_edited(tiny_long(), both).rope_scaling.attention_factor, 1.5);
}

// Phi3Config has 4096 there, which counts more than what the object says.
TEST(HfRope, OfPhi3TheOriginalLengthIsTheOneOutside) {
  const auto inside = [](const Json& length) {
    return [length](Json& file) {
      file.erase("original_max_position_embeddings");
      file["max_position_embeddings"] = 8192;
      file["rope_scaling"]["original_max_position_embeddings"] = length;
    };
  };
  EXPECT_THAT(refused_after(tiny_long(), inside(2048)), HasSubstr("'rope_scaling.original_max_position_embeddings'"));
  EXPECT_EQ(read_edited(tiny_long(), inside(4096)).rope_scaling.factor, 2);
  EXPECT_EQ(read_edited(tiny_long(), inside(nullptr)).rope_scaling.original_seq_length, 4096);
}

TEST(HfRope, AModelLongerThanYarnsStretchKeepsItsLength) {
  const auto length_after = [](int64_t length) {
    const ModelConfig read = read_edited(tiny_mistral(), [&](Json& file) { file["max_position_embeddings"] = length; });
    return Json::parse(text_of(read))["max_position_embeddings"].get<int64_t>();
  };
  EXPECT_EQ(length_after(64), 64);
  EXPECT_EQ(length_after(16), 16);  // 4 x 4
  EXPECT_EQ(length_after(8), 16);
}

}  // namespace
}  // namespace ranklab
