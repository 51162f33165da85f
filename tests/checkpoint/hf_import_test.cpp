// Export and import again gives the same bytes; and folders that are rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text.h"
#include "core/checkpoint/element_convert.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = bytes_of(entry.path().string());
  return files;
}

std::string exported(const ModelConfig& config, const std::string& name, HfExportOptions options = {}) {
  const std::string path = temporary_path("hf_" + name);
  options.durable = false;
  export_hf(counted_weights(config), config, path, options);
  return path;
}

TEST(HfImport, GivesBackEveryElementAndTheSameFilesAgain) {
  int number = 0;
  std::vector<ModelConfig> models = tiny_models();
  models.push_back(tiny_latent_of_experts());
  models.push_back(tiny_stablelm_parallel());
  for (const ModelConfig& config : models) {
    const std::string name = hf_family(config).model_type + std::to_string(number++);
    const std::string first = exported(config, "first_" + name);
    const HfModel model(first);
    const MemoryTensors ours = counted_weights(config);
    size_t compared = 0;
    for (const TensorInfo& tensor : model.tensors()) {
      if (ours.find(tensor.name) == nullptr) continue;
      EXPECT_EQ(floats(model, tensor.name), floats(ours, tensor.name)) << tensor.name;
      ++compared;
    }
    EXPECT_EQ(compared + 1, ours.tensors().size()) << name;
    const std::string second = temporary_path("hf_second_" + first.substr(first.rfind('/') + 1));
    export_hf(model, model.config(), second, {.durable = false});
    EXPECT_EQ(files_of(first), files_of(second)) << name;
    EXPECT_THAT(files_of(first), SizeIs(2));
  }
}

// transformers' own reading of it is tested in tests/interop.
TEST(HfExport, AByteModelBringsItsTokenizer) {
  ModelConfig config = tiny_llama();
  EXPECT_FALSE(files_of(exported(config, "few_tokens")).contains("tokenizer.json"));
  const std::string refused = message_of([&] { exported(config, "no_bytes", {.tokenizer = HfTokenizer::kBytes}); });
  EXPECT_THAT(refused, testing::HasSubstr("256 or more"));
  config.vocab_size = 300;
  EXPECT_FALSE(files_of(exported(config, "other_tokens")).contains("tokenizer.json"));
  EXPECT_TRUE(files_of(exported(config, "more_tokens", {.tokenizer = HfTokenizer::kBytes})).contains("tokenizer.json"));
  config.vocab_size = 256;
  EXPECT_FALSE(files_of(exported(config, "none", {.tokenizer = HfTokenizer::kNone})).contains("tokenizer.json"));
  const auto files = files_of(exported(config, "bytes"));
  const nlohmann::json file = nlohmann::json::parse(files.at("tokenizer.json"));
  const nlohmann::json& vocabulary = file["model"]["vocab"];
  ASSERT_EQ(vocabulary.size(), 256u);
  std::set<int> tokens;
  for (const auto& [text, token] : vocabulary.items()) tokens.insert(token.get<int>());
  EXPECT_EQ(tokens.size(), 256u);
  EXPECT_EQ(*tokens.rbegin(), 255);
  // Bytes in GPT-2's table: a letter, the blank, a newline, the soft hyphen, the last byte.
  for (const auto& [text, byte] :
       {std::pair<const char*, int>{"a", 'a'}, {"\u0120", ' '}, {"\u010a", '\n'}, {"\u0143", 0xAD}, {"\u00ff", 0xFF}})
    EXPECT_EQ(vocabulary.value(text, -1), byte) << text;
  EXPECT_TRUE(file["model"]["merges"].empty());
  const nlohmann::json settings = nlohmann::json::parse(files.at("tokenizer_config.json"));
  EXPECT_EQ(settings["model_max_length"], config.seq_length);
}

TEST(HfImport, TheGenerationConfigComesBackOrIsRefusedByName) {
  const std::string first = exported(tiny_llama(), "generation"), file = first + "/generation_config.json";
  const std::string text =
      "{\n  \"bos_token_id\": 1,\n  \"note\": \"\\u00e4 \\\"b\\\"\",\n  \"temperature\": 1.0,\n  \"top_p\": 1e-05\n}\n";
  put_bytes(file, text);
  const HfModel model(first);
  const std::string second = temporary_path("hf_generation_again");
  export_hf(model, model.config(), second, {.durable = false});
  EXPECT_EQ(files_of(first), files_of(second));
  ModelConfig config = tiny_llama();
  config.hf_generation_config = "0.6";
  EXPECT_THAT(message_of([&] { exported(config, "generation_number"); }), HasSubstr("--hf-generation-config"));
  put_bytes(file, text.substr(0, 9));
  EXPECT_THAT(message_of([&] { HfModel{first}; }), HasSubstr("generation_config.json"));
}

TEST(HfImport, SixteenBitsComeBackAsTheyWere) {
  const ModelConfig config = tiny_deepseek();
  for (const TensorType type : {TensorType::kBF16, TensorType::kF16}) {
    const std::string first = exported(config, "half_" + std::string(name(type)), {.type = type});
    const HfModel model(first);
    EXPECT_EQ(model.type(), type);
    EXPECT_EQ(model.tensor("weight/layers.0.attention.q_up.weight").type, type);
    EXPECT_EQ(model.tensor("buffer/layers.1.mlp.router.bias").type, TensorType::kF32);
    const HfFolder folder(first);
    EXPECT_EQ(folder.tensor("model.norm.weight").type, type);
    EXPECT_EQ(folder.tensor("model.layers.1.mlp.gate.e_score_correction_bias").type, TensorType::kF32);
    const std::string second = temporary_path("hf_half_again_" + std::string(name(type)));
    export_hf(model, model.config(), second, {.durable = false});  // as they are stored
    EXPECT_EQ(files_of(first), files_of(second));
    const std::string wide = temporary_path("hf_half_wide_" + std::string(name(type)));
    export_hf(model, model.config(), wide, {.type = TensorType::kF32, .durable = false});
    EXPECT_EQ(HfModel(wide).type(), TensorType::kF32);
  }
}

// A folder whose tensors are not all of one type: those that become one of ours are widened, and config.json names a
// type that holds all.
TEST(HfImport, MixedTypesLoseNothing) {
  const std::string path = exported(tiny_llama(), "mixed", {.type = TensorType::kBF16});
  const HfFolder folder(path);
  Tensors tensors;
  const auto type_of = [](const std::string& name) {
    if (name.ends_with("norm.weight")) return TensorType::kF32;
    return name.ends_with("layers.0.self_attn.k_proj.weight") ? TensorType::kF16 : TensorType::kBF16;
  };
  for (const TensorInfo& t : folder.tensors()) {
    const auto bytes = convert_elements(t.type, folder.read(t.name), TensorType::kF32);
    tensors.add(t.name, type_of(t.name), t.shape, convert_elements(TensorType::kF32, bytes, type_of(t.name)));
  }
  write_safetensors(path + "/model.safetensors", tensors, {.durable = false});
  const HfModel model(path);
  EXPECT_EQ(model.type(), TensorType::kBF16);
  EXPECT_EQ(model.tensor("weight/final_norm.weight").type, TensorType::kF32);
  EXPECT_EQ(model.tensor("weight/layers.0.attention.qkv.weight").type, TensorType::kF32);
  EXPECT_EQ(model.tensor("weight/layers.1.attention.qkv.weight").type, TensorType::kBF16);
  const std::string again = temporary_path("hf_mixed_again");
  export_hf(model, model.config(), again, {.durable = false});
  EXPECT_THAT(bytes_of(again + "/config.json"), HasSubstr("\"torch_dtype\": \"float32\""));
  const HfModel same(again);
  for (const TensorInfo& t : model.tensors()) EXPECT_EQ(same.read(t.name), model.read(t.name)) << t.name;
}

TEST(HfImport, ManyFilesAreOneModel) {
  const ModelConfig config = tiny_deepseek();
  const std::string whole = exported(config, "whole"), cut = exported(config, "cut", {.max_shard_bytes = 1500});
  const auto files = files_of(cut);
  EXPECT_TRUE(files.contains("model.safetensors.index.json"));
  EXPECT_TRUE(files.contains(strprintf("model-00001-of-%05zu.safetensors", files.size() - 2)));
  EXPECT_GT(files.size(), 5u);
  const HfModel a(whole), b(cut);
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const TensorInfo& tensor : a.tensors()) EXPECT_EQ(a.read(tensor.name), b.read(tensor.name)) << tensor.name;
}

// A folder of other tensors than the model's.
std::string refusal_after(const ModelConfig& config, const std::function<void(Tensors&, const TensorInfo&)>& change,
                          const std::string& name) {
  const std::string path = exported(config, name);
  const HfFolder folder(path);
  Tensors tensors;
  for (const TensorInfo& tensor : folder.tensors()) change(tensors, tensor);
  write_safetensors(path + "/model.safetensors", tensors, {.durable = false});
  return message_of([&] {
    const HfModel model(path);
    for (const TensorInfo& tensor : model.tensors()) model.read(tensor.name);
  });
}

void keep(Tensors& tensors, const TensorInfo& tensor, std::vector<int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  tensors.add(tensor.name, tensor.type, std::move(shape), std::vector<float>(static_cast<size_t>(elements), 1.0F));
}

TEST(HfImport, WhatIsMissingLeftOverOrOfAnotherShapeIsNamed) {
  EXPECT_THAT(refusal_after(
                  tiny_llama(),
                  [](Tensors& tensors, const TensorInfo& t) {
                    if (!t.name.ends_with("k_proj.weight")) keep(tensors, t, t.shape);
                  },
                  "missing"),
              AllOf(HasSubstr("missing"), HasSubstr("model.layers.0.self_attn.k_proj.weight"),
                    HasSubstr("model.layers.1.self_attn.k_proj.weight")));
  EXPECT_THAT(refusal_after(
                  tiny_llama(),
                  [](Tensors& tensors, const TensorInfo& t) {
                    keep(tensors, t, t.shape);
                    if (t.name == "model.norm.weight") keep(tensors, {"model.norm.bias", t.type, {}}, t.shape);
                  },
                  "left_over"),
              AllOf(HasSubstr("model.norm.bias"), HasSubstr("LlamaForCausalLM")));
  EXPECT_THAT(refusal_after(
                  tiny_llama(),
                  [](Tensors& tensors, const TensorInfo& t) {
                    keep(tensors, t, t.name == "lm_head.weight" ? std::vector<int64_t>{4, 8} : t.shape);
                  },
                  "shape"),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("[4, 8]"), HasSubstr("[5, 8]")));
}

// Rejected before memory is allocated for a list of its tensors.
TEST(HfImport, AModelOfFarMoreTensorsIsRefusedByItsNumbers) {
  const std::string path = exported(tiny_mixtral(), "many");
  std::string config = bytes_of(path + "/config.json");
  const std::string experts = "\"num_local_experts\": 3";
  put_bytes(path + "/config.json",
            config.replace(config.find(experts), experts.size(), "\"num_local_experts\": 65536"));
  EXPECT_THAT(message_of([&] { HfModel model(path); }),
              AllOf(HasSubstr("far more parameters"), HasSubstr("35 tensors"), HasSubstr("262157 parameters")));
}

TEST(HfImport, OldTablesAreNoWeights) {
  EXPECT_EQ(refusal_after(
                tiny_llama(),
                [](Tensors& tensors, const TensorInfo& t) {
                  keep(tensors, t, t.shape);
                  if (t.name == "model.norm.weight")
                    keep(tensors, {"model.layers.0.self_attn.rotary_emb.inv_freq", t.type, {}}, {1});
                },
                "tables"),
            "");
}

TEST(HfImport, ACopyThatIsNoneIsRefused) {
  const auto change = [](Tensors& tensors, const TensorInfo& t) {
    keep(tensors, t, t.shape);
    if (t.name == "transformer.wte.weight") tensors.add("lm_head.weight", t.type, {5, 4}, std::vector<float>(20, 2.0F));
  };
  EXPECT_THAT(refusal_after(tiny_gpt2(), change, "copy"),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("transformer.wte.weight")));
}

TEST(HfImport, ModulesThatOnlyTheConfigurationHasAreLeftOut) {
  ModelConfig config = tiny_latent();
  const std::string path = exported(config, "absent");
  const HfFolder folder(path);
  Tensors tensors;
  for (const TensorInfo& t : folder.tensors()) {
    if (!t.name.starts_with("model.layers.2.")) keep(tensors, t, t.shape);
  }
  write_safetensors(path + "/model.safetensors", tensors, {.durable = false});
  const HfModel model(path);
  EXPECT_EQ(model.config().mtp_num_layers, 0);
  EXPECT_THAT(model.notes(), ElementsAre(HasSubstr("num_nextn_predict_layers")));
}

TEST(HfImport, TheIndexCannotLeadOutOfTheFolder) {
  const std::string path = exported(tiny_llama(), "hostile");
  std::filesystem::rename(path + "/model.safetensors", path + "/model-00001-of-00001.safetensors");
  const auto with = [&](const std::string& index) {
    put_bytes(path + "/model.safetensors.index.json", index);
    return message_of([&] { HfModel model(path); });
  };
  EXPECT_THAT(with(R"({"weight_map": {"a": "../x.safetensors"}})"), HasSubstr("../x.safetensors"));
  EXPECT_THAT(with(R"({"weight_map": {"a": "/etc/x.safetensors"}})"), HasSubstr("whose name is not plain"));
  EXPECT_THAT(with(R"({"weight_map": {"a": ".x.safetensors"}})"), HasSubstr("whose name is not plain"));
  EXPECT_THAT(with(R"({"weight_map": {"a": 3}})"), HasSubstr("number"));
  EXPECT_THAT(with(R"({"weight_map": {"a": "model-00001-of-00001.safetensors"}})"), HasSubstr("'a'"));
  EXPECT_THAT(with(R"({"weight_map": {}})"), HasSubstr("missing"));
  EXPECT_THAT(with("[" + std::string(100000, '[')), HasSubstr("not an index"));
  EXPECT_THAT(with(R"({"weight_map": {"model.norm.weight": "model-00001-of-00001.safetensors"}})"),
              HasSubstr("lacks a tensor"));
  std::filesystem::create_symlink(path + "/model-00001-of-00001.safetensors", path + "/model.safetensors");
  EXPECT_THAT(message_of([&] { HfModel model(path); }),
              testing::AllOf(HasSubstr("symbolic link"), HasSubstr("cp -rL")));  // a cache of the hub has links
}

TEST(HfExport, RefusesAFolderWithFilesAndTensorsThatAreNotTheModels) {
  const ModelConfig config = tiny_llama();
  const std::string path = exported(config, "again");
  MemoryTensors ours = counted_weights(config);
  const auto write = [&](const std::string& folder) {
    return message_of([&] { export_hf(ours, config, folder, {.durable = false}); });
  };
  EXPECT_THAT(write(path), HasSubstr("is not empty"));
  const std::string fresh = temporary_path("hf_never");
  ours.reshape("weight/final_norm.weight", {9});
  EXPECT_THAT(write(fresh), AllOf(HasSubstr("weight/final_norm.weight"), HasSubstr("[9]"), HasSubstr("[8]")));
  ours.reshape("weight/final_norm.weight", {8});
  ours.add("weight/layers.2.mlp_norm.weight", {8});
  EXPECT_THAT(write(fresh), HasSubstr("weight/layers.2.mlp_norm.weight"));
  ours.remove("weight/layers.2.mlp_norm.weight");
  ours.remove("weight/head.weight");
  EXPECT_THAT(write(fresh), AllOf(HasSubstr("missing"), HasSubstr("weight/head.weight")));
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

}  // namespace
}  // namespace ranklab
