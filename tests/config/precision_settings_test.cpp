#include "core/config/precision_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "core/config/precision_choice.h"
#include "core/config/requirements.h"
#include "core/config/settings/sources.h"
#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Settings = std::vector<std::pair<std::string, std::string>>;

TrainConfig config_of(const Settings& settings) {
  std::vector<ConfigSetting> list;
  for (const auto& [key, text] : settings) list.push_back({key, text, "test"});
  return merge_config({}, list).config;
}

PrecisionRecipe recipe_of(Settings settings) {
  for (auto& [key, text] : settings) {
    if (!key.starts_with("model.") && !key.starts_with("train.")) key = "precision." + key;
  }
  return precision_settings(config_of(settings)).recipe;
}

TEST(PrecisionSettings, AModeNamesARecipe) {
  EXPECT_EQ(recipe_of({}).name, "fp32");
  EXPECT_EQ(recipe_of({{"train.bf16", "true"}}), find_precision_recipe("bf16"));
  EXPECT_EQ(recipe_of({{"fp16", "true"}}), find_precision_recipe("fp16"));
  EXPECT_EQ(recipe_of({{"fp8", "true"}}), find_precision_recipe("fp8_delayed"));
  EXPECT_EQ(recipe_of({{"fp4", "true"}}), find_precision_recipe("nvfp4"));
  EXPECT_EQ(recipe_of({{"fp4", "true"}, {"recipe", "mxfp4"}}), find_precision_recipe("mxfp4"));
  const PrecisionRecipe wide = recipe_of({{"train.params_dtype", "fp64"}});
  EXPECT_EQ(wide.compute, DType::kFloat64);
  EXPECT_EQ(wide.exp_avg_sq, DType::kFloat64);
}

TEST(PrecisionSettings, GpusSumAndSendAsTheyDo) {
  const auto refused = [](Settings settings) -> std::string {
    settings.insert(settings.begin(), {{"parallel.backend", "cuda"}, {"precision.recipe", "deepseek_v3"}});
    try {
      check_requirements(config_of(settings));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_THAT(refused({{"precision.sums", "hopper"}}), HasSubstr("GPUs accumulate so"));
  EXPECT_EQ(refused({{"precision.sums", "hopper_promoted"}}), "") << "as the scales of its tiles have it";
  EXPECT_THAT(refused({{"precision.recipe", "mxfp8"}, {"precision.sums", "hopper_promoted"}}),
              HasSubstr("GPUs accumulate so"));
  EXPECT_EQ(refused({{"precision.recipe", "fp8_current"}, {"precision.sums", "hopper"}}), "");
  EXPECT_EQ(refused({{"precision.recipe", "fp8_rowwise"}, {"precision.sums", "hopper_promoted"}}), "");
  EXPECT_THAT(
      refused({{"precision.recipe", "fp8_current"}, {"precision.sums", "hopper"}, {"model.preset", "qwen3_moe_tiny"}}),
      HasSubstr("not in experts"));
  EXPECT_THAT(refused({{"precision.block_size", "64"}, {"precision.sums", "hopper_promoted"}}),
              HasSubstr("GPUs accumulate so"));
  EXPECT_EQ(refused({{"parallel.zero_stage", "3"}, {"precision.param_gather", "true"}}), "");
  EXPECT_EQ(refused({{"model.preset", "deepseek_v3_tiny"}, {"precision.dispatch", "true"}}), "");
}

TEST(PrecisionSettings, SettlingSaysTheTypeOfTheParametersAndTwiceIsOnce) {
  for (const auto& [name, bf16, fp16] :
       {std::tuple{"deepseek_v3", true, false}, {"fp16", false, true}, {"fp32", false, false}}) {
    TrainConfig config = config_of({{"precision.recipe", name}});
    settle_precision(config);
    EXPECT_EQ(config.bf16, bf16) << name;
    EXPECT_EQ(config.precision.fp16, fp16) << name;
  }
  TrainConfig config = config_of({{"precision.fp8", "true"}});
  settle_precision(config);
  EXPECT_TRUE(config.bf16);
  EXPECT_EQ(config.precision.recipe, "fp8_delayed");
  settle_precision(config);
  EXPECT_EQ(precision_settings(config).recipe, find_precision_recipe("fp8_delayed"));
}

TEST(PrecisionSettings, ParamsDtypeIsAnotherWordForAMode) {
  for (const auto& [type, dtype] : {std::pair{"bf16", DType::kBFloat16}, std::pair{"fp16", DType::kFloat16}}) {
    TrainConfig config;
    config.params_dtype = type;
    EXPECT_EQ(precision_settings(config).recipe.compute, dtype);
    settle_precision(config);
    EXPECT_EQ(config.element_dtype(), dtype);
    EXPECT_EQ(config.params_dtype, "fp32");
  }
  EXPECT_EQ(recipe_of({{"fp8", "true"}, {"train.params_dtype", "bf16"}}).name, "fp8_delayed");
}

TEST(PrecisionSettings, Fp8FormatChangesTheFormatsAlone) {
  const PrecisionRecipe base = find_precision_recipe("fp8_current");
  const PrecisionRecipe narrow = recipe_of({{"recipe", "fp8_current"}, {"fp8_format", "e4m3"}});
  EXPECT_EQ(narrow.linear.gradient.format, e4m3());
  EXPECT_EQ(narrow.linear.gradient.granularity, base.linear.gradient.granularity);
  const PrecisionRecipe hybrid = recipe_of({{"recipe", "deepseek_v3"}, {"fp8_format", "hybrid"}});
  EXPECT_EQ(hybrid.linear.activation.format, e4m3());
  EXPECT_EQ(hybrid.linear.weight.format, e4m3());
  EXPECT_EQ(hybrid.linear.gradient.format, e5m2());
  EXPECT_EQ(hybrid.linear.gradient.block, 128);
}

TEST(PrecisionSettings, BlockSizeSumsAndStatesAreSet) {
  const PrecisionRecipe recipe = recipe_of({{"recipe", "deepseek_v3"},
                                            {"model.preset", "deepseek_v3_tiny"},
                                            {"block_size", "32"},
                                            {"param_gather", "true"},
                                            {"sums", "hopper_promoted"},
                                            {"main_grads_dtype", "bf16"},
                                            {"exp_avg_sq_dtype", "fp16"}});
  EXPECT_EQ(recipe.linear.activation.block, 32);
  EXPECT_EQ(recipe.linear.weight.block, 32);
  EXPECT_EQ(recipe.dispatch.block, 32);
  EXPECT_EQ(recipe.gather.block, 32);
  EXPECT_EQ(recipe.linear.sum, SumPrecision::kHopperPromoted);
  EXPECT_EQ(recipe.main_grads, DType::kBFloat16);
  EXPECT_EQ(recipe.exp_avg, DType::kBFloat16) << "the recipe's";
  EXPECT_EQ(recipe.exp_avg_sq, DType::kFloat16);
}

TEST(PrecisionSettings, WhatTravelsFallsBackOnTheProductsFormatWithScalesOfItsOwn) {
  const Settings moe = {{"model.preset", "deepseek_v3_tiny"}, {"fp8", "true"}};
  EXPECT_FALSE(recipe_of(moe).dispatch.quantized());
  Settings on = moe;
  on.push_back({"dispatch", "true"});
  on.push_back({"param_gather", "true"});
  const PrecisionRecipe recipe = recipe_of(on);
  EXPECT_EQ(recipe.gather, (TensorPrecision{.format = e4m3(), .granularity = Granularity::kRow}));
  TensorPrecision exact = recipe.gather;
  exact.scale = ScaleRule::kPowerOfTwo;
  EXPECT_EQ(recipe.dispatch, exact);
  EXPECT_EQ(
      recipe_of({{"recipe", "deepseek_v3"}, {"model.preset", "deepseek_v3_tiny"}, {"dispatch", "false"}}).dispatch,
      TensorPrecision{});
}

TEST(PrecisionSettings, ListsHaveCommas) {
  const PrecisionRules rules = precision_settings(config_of({{"precision.recipe", "mxfp8"},
                                                             {"precision.include", "layers.*.mlp.* , layers.0.*"},
                                                             {"precision.exclude", "layers.1.*"},
                                                             {"precision.compute_rules", "head=fp32,layers.1.* = fp16"},
                                                             {"precision.compute_override", "layers.0.mlp.down=fp32"}}))
                                   .rules;
  EXPECT_THAT(rules.include, ElementsAre("layers.*.mlp.*", "layers.0.*"));
  EXPECT_THAT(rules.exclude, ElementsAre("layers.1.*"));
  EXPECT_THAT(rules.compute_rules, ElementsAre(Pair("head", DType::kFloat32), Pair("layers.1.*", DType::kFloat16)));
  EXPECT_THAT(rules.compute_overrides, ElementsAre(Pair("layers.0.mlp.down", DType::kFloat32)));
}

TEST(PrecisionSettings, ARecipeMayBeAFile) {
  const std::string path = temporary_path("mine.toml");
  std::ofstream(path) << "base = \"mxfp8\"\n[gradient]\nformat = \"e5m2\"\n";
  const PrecisionRecipe recipe = recipe_of({{"recipe", path}});
  EXPECT_EQ(recipe.linear.gradient.format, e5m2());
  EXPECT_EQ(recipe.linear.weight, find_precision_recipe("mxfp8").linear.weight);
}

struct Refusal {
  const char* name;
  Settings settings;
  std::vector<const char*> parts;
  ErrorKind kind = ErrorKind::kInvalidArgument;
};
class PrecisionRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(PrecisionRefusal, SaysWhatContradicts) {
  Settings settings = GetParam().settings;
  try {
    recipe_of(settings);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), GetParam().kind);
    for (const char* part : GetParam().parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

const Refusal kRefusals[] = {
    {"Bf16Fp16", {{"train.bf16", "true"}, {"fp16", "true"}}, {"exclude each other", "--bf16, --fp16"}},
    {"Bf16Fp8", {{"train.bf16", "true"}, {"fp8", "true"}}, {"--bf16, --fp8"}},
    {"Bf16Fp4", {{"train.bf16", "true"}, {"fp4", "true"}}, {"--bf16, --fp4"}},
    {"Fp16Fp8", {{"fp16", "true"}, {"fp8", "true"}}, {"--fp16, --fp8"}},
    {"Fp16Fp4", {{"fp16", "true"}, {"fp4", "true"}}, {"--fp16, --fp4"}},
    {"Fp8Fp4", {{"fp8", "true"}, {"fp4", "true"}}, {"--fp8, --fp4"}},
    {"Fp16AsBf16", {{"fp16", "true"}, {"train.params_dtype", "bf16"}}, {"--fp16, --params-dtype bf16"}},
    {"Fp8AsFp16", {{"fp8", "true"}, {"train.params_dtype", "fp16"}}, {"--fp8, --params-dtype fp16"}},
    {"Fp16Fp64", {{"fp16", "true"}, {"train.params_dtype", "fp64"}}, {"--fp16, --params-dtype fp64"}},
    {"Fp8Fp64", {{"fp8", "true"}, {"train.params_dtype", "fp64"}}, {"--fp8, --params-dtype fp64"}},
    {"Bf16WithFp16Recipe", {{"train.bf16", "true"}, {"recipe", "fp16"}}, {"contradicts --bf16", "parameters in fp16"}},
    {"Fp16WithFp8Recipe", {{"fp16", "true"}, {"recipe", "deepseek_v3"}}, {"contradicts --fp16", "parameters in bf16"}},
    {"Fp8WithBf16Recipe", {{"fp8", "true"}, {"recipe", "bf16"}}, {"contradicts --fp8", "products in bf16"}},
    {"Fp8WithFp4Recipe", {{"fp8", "true"}, {"recipe", "nvfp4"}}, {"contradicts --fp8", "products in 4 bits"}},
    {"Fp4WithFp8Recipe", {{"fp4", "true"}, {"recipe", "mxfp8"}}, {"contradicts --fp4", "products in 8 bits"}},
    {"Fp4WithFp16Recipe", {{"fp4", "true"}, {"recipe", "fp16"}}, {"contradicts --fp4", "products in fp16"}},
    {"RecipeWithFp64", {{"recipe", "mxfp8"}, {"train.params_dtype", "fp64"}}, {"contradicts --params-dtype fp64"}},
    {"UnknownRecipe", {{"recipe", "deepseek_v2"}}, {"did you mean 'deepseek_v3'?"}},
    {"NoFile", {{"recipe", "no/such.toml"}}, {"no/such.toml"}, ErrorKind::kIo},
    {"FormatWithoutFp8", {{"train.bf16", "true"}, {"fp8_format", "e4m3"}}, {"--fp8-format e4m3, recipe bf16"}},
    {"FormatWithFp4", {{"fp4", "true"}, {"fp8_format", "hybrid"}}, {"--fp8-format hybrid, recipe nvfp4"}},
    {"BlocksWithoutBlocks", {{"recipe", "fp8_current"}, {"block_size", "32"}}, {"the recipe has none"}},
    {"NegativeBlock", {{"recipe", "mxfp8"}, {"block_size", "-1"}}, {"--quantization-block-size is out of range"}},
    {"SumsOfFp4", {{"fp4", "true"}, {"sums", "hopper"}}, {"--fp8-accumulation hopper, recipe nvfp4"}},
    {"SumsWithoutFormats", {{"train.bf16", "true"}, {"sums", "fp32"}}, {"--fp8-accumulation fp32, recipe bf16"}},
    {"DispatchWithoutFormats",
     {{"model.preset", "deepseek_v3_tiny"}, {"dispatch", "true"}},
     {"--low-precision-dispatch, recipe fp32"}},
    {"DispatchWithoutExperts", {{"recipe", "mxfp8"}, {"dispatch", "true"}}, {"--num-experts 0"}},
    {"GatherIn4Bits", {{"recipe", "nvfp4"}, {"param_gather", "true"}}, {"a byte a number", "e2m1, scale e4m3"}},
    {"GatherWithoutFormats", {{"param_gather", "true"}}, {"--fp8-param-gather, recipe fp32"}},
    {"NoHistory", {{"fp8", "true"}, {"amax_history_len", "0"}}, {"--fp8-amax-history-len", "1 or more"}},
    {"StatsBackwards", {{"stats_interval", "-1"}}, {"--precision-stats-interval"}},
    {"IncludeWithoutFormats", {{"include", "head"}}, {"--low-precision-include head, recipe fp32"}},
    {"ExcludeWithoutFormats", {{"fp16", "true"}, {"exclude", "head"}}, {"--low-precision-exclude head, recipe fp16"}},
    {"EmptyEntry", {{"fp8", "true"}, {"exclude", "a,,b"}}, {"--low-precision-exclude has an empty entry", "'a,,b'"}},
    {"NoType", {{"compute_rules", "head"}}, {"--module-compute-dtype-rule", "'head'", "NAME=DTYPE"}},
    {"NoName", {{"compute_override", "=fp32"}}, {"--module-compute-dtype-override", "NAME=DTYPE"}},
    {"WrongType", {{"compute_rules", "head=fp23"}}, {"'head=fp23'", "one of fp32, bf16, fp16", "did you mean 'fp32'?"}},
};
INSTANTIATE_TEST_SUITE_P(EveryOne, PrecisionRefusal, testing::ValuesIn(kRefusals),
                         [](const auto& refusal) { return std::string(refusal.param.name); });

TEST(PrecisionPolicyOfARun, IsThereWhenSomethingDiffers) {
  EXPECT_EQ(resolve(config_of({{"train.bf16", "true"}})).precision, nullptr);
  EXPECT_EQ(resolve(config_of({{"precision.recipe", "bf16"}})).precision->recipe().name, "bf16");
  const RunPlan typed = resolve(config_of({{"precision.compute_rules", "head=bf16"}}));
  ASSERT_NE(typed.precision, nullptr);
  EXPECT_EQ(typed.precision->find("head")->compute, DType::kBFloat16);
  EXPECT_EQ(typed.precision->find("layers.0.mlp.down")->compute, DType::kFloat32);
  const RunPlan quantized = resolve(config_of({{"precision.fp8", "true"}}));
  EXPECT_TRUE(quantized.config.bf16);
  EXPECT_TRUE(quantized.precision->find("layers.3.mlp.down")->linear.quantized());
  EXPECT_EQ(resolve(quantized.config).precision->modules().size(), quantized.precision->modules().size());
}

}  // namespace
}  // namespace ranklab
