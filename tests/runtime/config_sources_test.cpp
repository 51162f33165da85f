#include "core/config/settings/nearest_key.h"
#include "core/config/settings/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/schema.h"
#include "core/config/settings/toml.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <typename Action>
std::string refusal(const Action& action, ErrorKind kind = ErrorKind::kInvalidArgument) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "accepted";
}

// A value that differs from the default, for every field.
std::string other_value(const ConfigField& field, const TrainConfig& config) {
  using Type = ConfigField::Type;
  const std::string value = field.get(config);
  if (field.key == "model.preset") return "llama_1b";
  if (field.key == "model.window_attn_skip_freq") return "[0]*2+[1]*4";
  if (field.key == "model.no_rope_freq") return "[0]*3+[1]";
  if (field.key == "linear_attention.freq") return "[1]*2+[0]";
  if (field.key == "model.hybrid_layer_pattern") return "M*-E";
  if (field.key == "moe.layer_freq") return "[0]+[1]";
  if (field.key == "parallel.cp_comm_type") return "a2a,p2p,a2a+p2p";
  if (field.key == "parallel.cp_sizes") return "2,4";
  if (field.key == "memory.recompute_modules") return "mlp,moe";
  if (field.key == "train.global_batch_tokens") return "8192";  // whole sequences
  if (field.key == "train.train_samples") return "640";         // whole batches
  if (field.key.ends_with("_factors")) return "1,1.5,2.25";
  if (field.key == "model.hf_eos_tokens") return "3,151645";
  if (field.key == "train.seed") return "18446744073709551615";  // more than TOML's integers hold
  if (!field.choices.empty()) return field.choices[value == field.choices[0] ? 1 : 0];
  if (field.type == Type::kBool) return value == "true" ? "false" : "true";
  if (field.type == Type::kInteger) return std::to_string(std::stoll(value) + 3);
  if (field.type == Type::kNumber) return "0.12345678901234568";
  return "a \"text\"\twith \\ and \n and \xc3\xa4";
}

TEST(ConfigToml, EveryFieldReadsBackAsItWasWritten) {
  for (const ConfigField& field : config_fields()) {
    const std::vector<ConfigSetting> one = {{field.key, other_value(field, TrainConfig{}), "test"}};
    const TrainConfig written = merge_config({}, one).config;
    const TrainConfig again = merge_config({}, parse_config_toml(config_toml(written), "t.toml")).config;
    EXPECT_EQ(field.get(again), one[0].text);
    for (const ConfigField& other : config_fields()) EXPECT_EQ(other.get(again), other.get(written)) << other.key;
  }
}

// dp 2 x tp 2 x pp 2 unless a size is given: then all sizes that are not given are 1.
TEST(DefaultLayout, StepsAsideAsSoonAsASizeIsGiven) {
  const auto sizes = [](std::vector<ConfigSetting> settings) {
    const RunPlan plan = resolve(merge_config({}, settings).config);
    return std::array{plan.dp(), plan.mesh.size(Axis::kTp), plan.mesh.size(Axis::kPp)};
  };
  using Sizes = std::array<int, 3>;
  EXPECT_EQ(sizes({}), (Sizes{2, 2, 2}));
  EXPECT_EQ(sizes({{"optim.lr", "1e-2", "test"}, {"parallel.pipeline_schedule", "zb-h1", "test"}}), (Sizes{2, 2, 2}));
  EXPECT_EQ(sizes({{"parallel.tp", "8", "test"}}), (Sizes{1, 8, 1}));
  EXPECT_EQ(sizes({{"parallel.pp", "4", "test"}}), (Sizes{2, 1, 4}));
  EXPECT_EQ(sizes({{"parallel.dp", "8", "test"}}), (Sizes{8, 1, 1}));
  EXPECT_EQ(sizes({{"parallel.world_size", "4", "test"}}), (Sizes{4, 1, 1}));
  EXPECT_EQ(sizes({{"parallel.world_size", "8", "test"}}), (Sizes{8, 1, 1}));
  EXPECT_EQ(sizes({{"model.num_layers", "1", "test"}}), (Sizes{8, 1, 1}));
  EXPECT_EQ(sizes({{"parallel.backend", "cuda", "test"}}), (Sizes{8, 1, 1}));
  EXPECT_EQ(sizes({{"precision.recipe", "mxfp8", "test"}}), (Sizes{4, 1, 2})) << "whole blocks";
  EXPECT_EQ(sizes({{"precision.fp8", "true", "test"}}), (Sizes{4, 1, 2}));
  EXPECT_EQ(sizes({{"precision.recipe", "bf16", "test"}}), (Sizes{2, 2, 2}));
}

TEST(ConfigToml, MinusZeroIsZero) {
  const MergedConfig merged = merge_config({}, parse_config_toml("[optim]\nlr = -0e3\n", "a.toml"));
  const MergedConfig again = merge_config({}, parse_config_toml(config_toml(merged.config), "b.toml"));
  EXPECT_FALSE(std::signbit(merged.config.lr));
  EXPECT_EQ(config_toml(again.config), config_toml(merged.config));
}

TEST(ConfigToml, NumbersBelowTheSmallestNormalOneAreRead) {
  const MergedConfig merged = merge_config({}, parse_config_toml("[optim]\nweight_decay = 1e-310\n", "a.toml"));
  EXPECT_EQ(merged.config.weight_decay, 1e-310);
  EXPECT_EQ(merge_config({}, parse_config_toml(config_toml(merged.config), "b.toml")).config.weight_decay, 1e-310);
}

TEST(ConfigToml, RemarksKeepItReadable) {
  const auto remark = [](const std::string& key) { return key == "optim.lr" ? "flag --lr" : std::string("default"); };
  const std::string text = config_toml({}, remark, {"parallel.tp"});
  EXPECT_THAT(text, HasSubstr("# flag --lr\n"));
  EXPECT_THAT(text, HasSubstr("\n# tp = 2"));
  EXPECT_NO_THROW(parse_config_toml(text, "t.toml"));
}

TEST(ConfigToml, MistakesNameFileLineAndTheNearestName) {
  const auto parse = [](const std::string& text) { return refusal([&] { parse_config_toml(text, "run.toml"); }); };
  EXPECT_THAT(parse("[model]\nnum_layer = 4\n"),
              AllOf(HasSubstr("run.toml:2"), HasSubstr("model.num_layer"), HasSubstr("num_layers' in [model]")));
  EXPECT_THAT(parse("\n[modell]\nnum_layers = 4\n"), AllOf(HasSubstr("run.toml:3"), HasSubstr("in [model]")));
  EXPECT_THAT(parse("lr = 1e-3\n"), AllOf(HasSubstr("run.toml:1"), HasSubstr("lr")));
  EXPECT_THAT(parse("[empty_table_of_nobody]\n"), HasSubstr("run.toml:1"));
  EXPECT_THAT(parse("[optim]\n\nlr = \"fast\"\n"), AllOf(HasSubstr("run.toml:3"), HasSubstr("a number")));
  EXPECT_THAT(parse("[model]\nnum_layers = 4.5\n"), AllOf(HasSubstr("run.toml:2"), HasSubstr("an integer")));
  EXPECT_THAT(parse("[model]\nnum_layers = \"4\"\n"), HasSubstr("an integer"));
  EXPECT_THAT(parse("[trace]\nenabled = 1\n"), HasSubstr("true or false"));
  EXPECT_THAT(parse("[sim]\nhardware = 5\n"), HasSubstr("a string in quotes"));
  EXPECT_THAT(parse("[model.num_layers]\nx = 5\n"), HasSubstr("run.toml:1"));
  EXPECT_THAT(refusal([] { parse_config_toml("[a]\nb = \n", "run.toml"); }, ErrorKind::kBadFile),
              HasSubstr("run.toml:2"));
  EXPECT_THAT(refusal([] { read_config_toml("/no/such.toml"); }, ErrorKind::kIo), HasSubstr("/no/such.toml"));
}

TEST(ConfigKeys, TheNearestIsOfTheFlagOrATypoAwayOrOfTheSameWords) {
  const std::pair<const char*, const char*> rows[] = {
      {"train.lr", "optim.lr"},  // the flag's name
      {"tp", "parallel.tp"},
      {"train.steps", "train.train_iters"},
      {"trace.steps", "trace.step_end"},  // not train.train_iters, whose flag is --steps, too
      {"trace.device", "parallel.device"},
      {"train.weight_decay", "optim.weight_decay"},
      {"modle.num_layers", "model.num_layers"},
      {"optim.lrr", "optim.lr"},
      {"model.layers", "model.num_layers"},
      {"train.iterations", "train.train_iters"},  // its words
      {"train.batch_size", "train.micro_batch_size"},
      {"train.nothing_like_it", ""},
      {"nobody.iterations", ""},
  };
  for (const auto& [key, nearest] : rows) EXPECT_EQ(nearest_config_key(key), nearest) << key;
}

TEST(ConfigMerge, LaterSourcesWinAndEachValueKnowsItsOrigin) {
  std::vector<ConfigSetting> settings = parse_config_toml("[optim]\nlr = 1\nmin_lr = 0.5\n", "a.toml");
  for (const auto& setting : parse_config_toml("[optim]\n\nlr = 2\n", "b.toml")) settings.push_back(setting);
  const MergedConfig files = merge_config({}, settings);
  EXPECT_EQ(files.config.lr, 2);
  EXPECT_EQ(files.origins.at("optim.lr"), "b.toml:3");
  EXPECT_EQ(files.origins.at("optim.min_lr"), "a.toml:3");
  EXPECT_EQ(files.origins.at("optim.clip_grad"), "default");
  EXPECT_EQ(files.origins.at("model.num_layers"), "preset gpt_tiny");
  EXPECT_EQ(files.origins.at("model.preset"), "default");
  EXPECT_TRUE(files.given("optim.lr"));
  EXPECT_FALSE(files.given("optim.clip_grad"));
  EXPECT_FALSE(files.given("model.num_layers"));
  EXPECT_FALSE(files.given("model.preset"));
}

TEST(ConfigMerge, ThePresetLiesBelowEverySourcesModelKeys) {
  const std::vector<ConfigSetting> settings = {{"model.num_layers", "3", "a.toml:2"},
                                               {"model.preset", "gpt_tiny", "a.toml:3"},
                                               {"model.preset", "llama_1b", "flag --preset"}};
  const MergedConfig merged = merge_config({}, settings);
  EXPECT_EQ(merged.config.model.num_layers, 3);
  EXPECT_EQ(merged.config.model.hidden_size, 2048);
  EXPECT_EQ(merged.origins.at("model.hidden_size"), "preset llama_1b");
  EXPECT_EQ(merged.origins.at("model.preset"), "flag --preset");
  EXPECT_THAT(refusal([] {
                merge_config({}, std::vector<ConfigSetting>{{"model.preset", "gpt_tin", "a.toml:9"}});
              }),
              AllOf(HasSubstr("a.toml:9"), HasSubstr("gpt_tiny")));
}

// The models of `bench train` are trained with the batches of the peer's (tests/peer/peer.py).
TEST(ConfigMerge, ALearningRateBelowTheDefaultsEndHasAnEndBelowItself) {
  const auto min_lr = [](const std::vector<ConfigSetting>& settings) {
    return merge_config({}, settings).config.min_lr;
  };
  EXPECT_EQ(min_lr({}), TrainConfig{}.min_lr);
  EXPECT_EQ(min_lr({{"optim.lr", "0.01", ""}}), TrainConfig{}.min_lr);
  EXPECT_EQ(min_lr({{"optim.lr", "1e-4", "a"}}), 1e-4 / 10);
  EXPECT_EQ(min_lr({{"optim.lr", "1e-4", "a"}, {"optim.min_lr", "2e-4", "a"}}), 2e-4) << "as given, which is refused";
}

TEST(ConfigMerge, APresetOfABenchmarkBringsItsBatch) {
  const std::vector<ConfigSetting> preset = {{"model.preset", "peer_m", "flag --preset"}};
  const MergedConfig merged = merge_config({}, preset);
  EXPECT_EQ(merged.config.global_batch_size, 16);
  EXPECT_EQ(merged.config.model.seq_length, 256);
  EXPECT_EQ(merged.origins.at("train.global_batch_size"), "preset peer_m");
  EXPECT_FALSE(merged.given("train.global_batch_size"));
  std::vector<ConfigSetting> given = preset;
  given.push_back({"train.global_batch_size", "64", "run.toml:3"});
  EXPECT_EQ(merge_config({}, given).config.global_batch_size, 64);
  EXPECT_EQ(merge_config({}, given).origins.at("train.global_batch_size"), "run.toml:3");
  const MergedConfig usual =
      merge_config({}, std::vector<ConfigSetting>{{"model.preset", "llama_1b", "flag --preset"}});
  EXPECT_EQ(usual.config.global_batch_size, TrainConfig{}.global_batch_size);
  EXPECT_EQ(usual.origins.at("train.global_batch_size"), "default");
}

TEST(ConfigMerge, ARefusedValueNamesItsSource) {
  const std::vector<ConfigSetting> settings = {{"optim.lr", "much", "environment RANKLAB_OPTIM_LR"}};
  EXPECT_THAT(refusal([&] { merge_config({}, settings); }),
              AllOf(HasSubstr("environment RANKLAB_OPTIM_LR"), HasSubstr("much")));
}

TEST(ConfigEnvironment, EveryKeyHasItsOwnVariable) {
  for (const ConfigField& field : config_fields()) {
    const std::vector<std::string> variables = {"PATH=/bin", environment_name(field.key) + "=a=b"};
    const auto settings = environment_settings(variables);
    ASSERT_EQ(settings.size(), 1u) << field.key;
    EXPECT_EQ(settings[0].key, field.key);
    EXPECT_EQ(settings[0].text, "a=b");
  }
  EXPECT_EQ(environment_name("model.num_layers"), "RANKLAB_MODEL_NUM_LAYERS");
}

TEST(ConfigEnvironment, OtherVariablesAreLeftAloneMisspeltOnesAreNot) {
  const std::vector<std::string> others = {"RANKLAB_TORCH_ROOT=/x", "RANKLAB_CUDA_MODULE=/y", "RANKLAB_SKIP_TESTS=1",
                                           "HOME=/z", "RANKLAB_MODELS=1"};
  EXPECT_TRUE(environment_settings(others).empty());
  const std::vector<std::string> misspelt = {"RANKLAB_MODEL_NUM_LAYER=4"};
  EXPECT_THAT(refusal([&] { environment_settings(misspelt); }), HasSubstr("RANKLAB_MODEL_NUM_LAYERS"));
}

TEST(ConfigAssignment, TakesKeyAndValueAndNamesTheNearestKey) {
  const ConfigSetting setting = assignment_setting("sample.prompt=a=b");
  EXPECT_EQ(setting.key, "sample.prompt");
  EXPECT_EQ(setting.text, "a=b");
  EXPECT_EQ(setting.origin, "--set");
  EXPECT_THAT(refusal([] { assignment_setting("optim.lrr=1"); }), HasSubstr("did you mean 'optim.lr'"));
  EXPECT_THAT(refusal([] { assignment_setting("optim.lr"); }), HasSubstr("KEY=VALUE"));
}

TEST(ConfigSchema, DescribesEveryKeyWithTypeAndDefault) {
  const auto schema = nlohmann::json::parse(config_json_schema());
  for (const ConfigField& field : config_fields()) {
    const size_t dot = field.key.find('.');
    const auto& row =
        schema.at("properties").at(field.key.substr(0, dot)).at("properties").at(field.key.substr(dot + 1));
    EXPECT_TRUE(row.contains("type")) << field.key;
    const bool derived = field.type == ConfigField::Type::kBool && field.get(TrainConfig{}) == "auto";
    EXPECT_EQ(row.contains("default"), !derived) << field.key;
    EXPECT_THAT(row.at("description").get<std::string>(), HasSubstr(field.help));
  }
  const auto& optim = schema.at("properties").at("optim");
  EXPECT_EQ(optim.at("additionalProperties"), false);
  EXPECT_EQ(optim.at("properties").at("optimizer").at("enum"), nlohmann::json({"adamw", "sgd", "muon", "lion"}));
  EXPECT_EQ(optim.at("properties").at("lr").at("type"), "number");
}

// Each axis by itself, or with others: the ranks are their product.
TEST(TheWorld, FollowsFromTheAxesOnceDpIsGiven) {
  const auto world = [](const std::vector<ConfigSetting>& settings) {
    return merge_config({}, settings).config.parallel.world;
  };
  EXPECT_EQ(world({{"parallel.dp", "4", "flag --dp"}}), 4);
  EXPECT_EQ(world({{"parallel.dp", "4", "flag --dp"}, {"parallel.tp", "2", "flag --tp"}}), 8);
  EXPECT_EQ(world({{"parallel.dp", "3", "run.toml:1"}, {"parallel.pp", "2", "run.toml:2"}}), 6);
  EXPECT_EQ(world({{"parallel.dp", "2", "flag --dp"}, {"parallel.world_size", "4", "flag --world-size"}}), 4);
  EXPECT_EQ(world({{"parallel.dp", "0", "flag --dp"}}), 8);
  EXPECT_EQ(world({{"parallel.tp", "2", "flag --tp"}}), 8);
  EXPECT_GT(world({{"parallel.dp", "2000000000", "flag --dp"}, {"parallel.tp", "2000000000", "flag --tp"}}), 131072);
  EXPECT_EQ(resolve(merge_config({}, std::vector<ConfigSetting>{{"parallel.dp", "4", "flag --dp"}}).config).dp(), 4);
}

}  // namespace
}  // namespace ranklab
