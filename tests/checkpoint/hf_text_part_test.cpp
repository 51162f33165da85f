// Text models in folders that hold a model of pictures beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/checkpoint/hf/text_part.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

using Name = std::string (*)(const std::string&);
// As published, and as transformers writes some of them since version 4.52.
std::string before_all(const std::string& name) { return "language_model." + name; }
std::string before_layers(const std::string& name) {
  return name.starts_with("model.") ? "model.language_model." + name.substr(6) : name;
}

// The folder of `config` as part of a larger one.
std::string folder_of_whole(const ModelConfig& config, const std::string& name, Name named,
                            const std::vector<std::string>& beside) {
  const std::string text = temporary_path("hf_text_" + name), whole = temporary_path("hf_whole_" + name);
  export_hf(counted_weights(config), config, text, {.durable = false});
  std::filesystem::create_directory(whole);
  Json inner = Json::parse(bytes_of(text + "/config.json"));
  Json outer = {{"architectures", {"Llama4ForConditionalGeneration"}},
                {"model_type", "llama4"},
                {"tie_word_embeddings", inner.at("tie_word_embeddings")},
                {"vision_config", {{"hidden_size", 16}}}};
  inner.erase("architectures");
  inner.erase("tie_word_embeddings");
  outer["text_config"] = inner;
  put_bytes(whole + "/config.json", outer.dump());
  const HfFolder from(text);
  Tensors tensors;
  for (const TensorInfo& tensor : from.tensors())
    tensors.add(named(tensor.name), tensor.type, tensor.shape, floats(from, tensor.name));
  for (const std::string& other : beside) tensors.add(other, TensorType::kF32, {2}, std::vector<float>{1, 2});
  write_safetensors(whole + "/model.safetensors", tensors, {});
  return whole;
}

TEST(HfTextPart, IsImportedFromTheWhole) {
  for (const ModelConfig& config : {tiny_llama4(), tiny_gemma3(), tiny_mistral(), tiny_qwen3_5()}) {
    for (const Name named : {before_all, before_layers}) {
      const std::string name = hf_family(config).model_type + (named == before_all ? "_all" : "_layers");
      const std::vector<std::string> beside = {"vision_model.class_embedding", "multi_modal_projector.bias"};
      const HfModel model(folder_of_whole(config, name, named, beside));
      EXPECT_EQ(text_of(model.config()), text_of(config));
      const MemoryTensors ours = counted_weights(config);
      for (const TensorInfo& tensor : model.tensors())
        EXPECT_EQ(floats(model, tensor.name), floats(ours, tensor.name)) << tensor.name;
      EXPECT_THAT(model.notes(), ElementsAre("the text model of Llama4ForConditionalGeneration: 2 tensors beside it "
                                             "are ignored"));
    }
  }
}

// Tensors that the text model's names claim are not ignored.
TEST(HfTextPart, ALeftOverTensorOfItIsNamed) {
  EXPECT_THAT(message_of([] {
                const HfModel model(folder_of_whole(tiny_llama4(), "left_over", before_all,
                                                    {"language_model.model.layers.9.no_such.weight"}));
              }),
              HasSubstr("language_model.model.layers.9.no_such.weight"));
}

TEST(HfTextPart, ATextModelThatRanklabHasNotIsNamedByItsType) {
  const auto message = [](const char* type) {
    Json file = Json::parse(text_of(tiny_llama4()));
    file["model_type"] = type;
    file.erase("architectures");
    const Json whole = {{"architectures", {"OtherForConditionalGeneration"}}, {"text_config", file}};
    return message_of([&] { read_hf_config(whole.dump(), "config.json"); });
  };
  EXPECT_EQ(message("llama4_text"), "");
  EXPECT_THAT(message("t5"), HasSubstr("'model_type'"));
}

// Of a text part transformers writes what differs from its class (to_diff_dict): google/gemma-3-4b-it's.
TEST(HfTextPart, WhatIsNotSaidIsTheClasss) {
  const Json four = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                     {"model_type", "gemma3"},
                     {"eos_token_id", {1, 106}},
                     {"text_config",
                      {{"hidden_size", 2560},
                       {"intermediate_size", 10240},
                       {"model_type", "gemma3_text"},
                       {"num_hidden_layers", 34},
                       {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                       {"sliding_window", 1024}}}};
  const ModelConfig gemma = read_hf_config(four.dump(), "config.json").model;
  EXPECT_EQ(count_model(gemma, 8).total, 3880263168);  // "4B" without the pictures' part
  EXPECT_EQ(gemma.vocab_size, 262208);
  EXPECT_EQ(gemma.num_attention_heads, 8);
  EXPECT_EQ(gemma.num_query_groups, 4);
  EXPECT_EQ(gemma.head_dim(), 256);
  EXPECT_EQ(gemma.seq_length, 131072);
  EXPECT_EQ(gemma.hf_eos_tokens, (std::vector<int64_t>{1, 106}));
  // llava-hf/llava-1.5-7b-hf and mistral-community/pixtral-12b
  const auto of_text = [](const Json& text) {
    const Json file = {{"architectures", {"LlavaForConditionalGeneration"}}, {"text_config", text}};
    return count_model(read_hf_config(file.dump(), "config.json").model, 8).total;
  };
  EXPECT_EQ(of_text({{"model_type", "llama"}, {"max_position_embeddings", 4096}, {"vocab_size", 32064}}), 6738939904);
  const Json pixtral = {{"model_type", "mistral"},
                        {"hidden_size", 5120},
                        {"head_dim", 128},
                        {"intermediate_size", 14336},
                        {"num_hidden_layers", 40},
                        {"rope_theta", 1e9},
                        {"max_position_embeddings", 1024000},
                        {"sliding_window", nullptr},
                        {"vocab_size", 131072}};
  EXPECT_EQ(of_text(pixtral), 12247782400);
  // A text model's own file is complete.
  EXPECT_THAT(message_of([] { read_hf_config(R"({"architectures": ["Gemma3ForCausalLM"]})", "config.json"); }),
              HasSubstr("a key is missing"));
}

// Keys of the outer model count if its text model has none; whether the head is tied is set by the outer model.
TEST(HfTextPart, KeysOfTheWhole) {
  Json text = {{"model_type", "mistral"}, {"bos_token_id", nullptr}, {"tie_word_embeddings", false}};
  Json file = {{"architectures", {"Mistral3ForConditionalGeneration"}},
               {"text_config", text},
               {"bos_token_id", 7},
               {"torch_dtype", "bfloat16"},
               {"tie_word_embeddings", true},
               {"vision_config", Json::object()}};
  const HfTextPart part = hf_text_part(file);
  EXPECT_EQ(part.whole, "Mistral3ForConditionalGeneration");
  EXPECT_EQ(
      part.config,
      (Json{
          {"model_type", "mistral"}, {"bos_token_id", 7}, {"tie_word_embeddings", true}, {"torch_dtype", "bfloat16"}}));
  file["architectures"] = {"MistralForCausalLM"};  // whatever else is there
  EXPECT_EQ(hf_text_part(file).whole, "");
  EXPECT_EQ(hf_text_part(file).config, file);
}

}  // namespace
}  // namespace ranklab
