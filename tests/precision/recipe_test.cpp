#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/precision/recipe_check.h"
#include "core/precision/recipe_toml.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

TEST(Recipe, EveryBuiltInOneIsSoundNamedAndSourced) {
  std::set<std::string> names;
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    EXPECT_TRUE(names.insert(recipe.name).second) << recipe.name;
    EXPECT_FALSE(recipe.summary.empty()) << recipe.name;
    EXPECT_FALSE(recipe.source.empty()) << recipe.name;
    EXPECT_NO_THROW(check_recipe(recipe, recipe.name));
    EXPECT_EQ(find_precision_recipe(recipe.name), recipe);
  }
  for (const char* name :
       {"bf16", "fp16", "fp8_delayed", "fp8_current", "fp8_rowwise", "deepseek_v3", "mxfp8", "nvfp4", "mxfp4"})
    EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(RecipeToml, EveryBuiltInOneReadsBackAsItself) {
  for (const PrecisionRecipe& recipe : precision_recipes())
    EXPECT_EQ(parse_recipe_toml(recipe_toml(recipe), "written.toml"), recipe) << recipe_toml(recipe);
}

TEST(RecipeToml, ABaseGivesWhatIsNotSaid) {
  const PrecisionRecipe recipe = parse_recipe_toml(R"(
base = "deepseek_v3"
exp_avg = "fp32"
high_precision = ["head", "layers.0.*"]
[gradient]
format = "e5m2"
granularity = "tensor"
scale = "delayed"
[dispatch]
format = "none"
)",
                                                   "folder/wide_gradients.toml");
  EXPECT_EQ(recipe.name, "wide_gradients");
  PrecisionRecipe want = find_precision_recipe("deepseek_v3");
  want.name = "wide_gradients";
  want.exp_avg = DType::kFloat32;
  want.high_precision = {"head", "layers.0.*"};
  want.linear.gradient = {.format = e5m2(), .scale = ScaleRule::kDelayedFp32};
  want.dispatch = {};
  EXPECT_EQ(recipe, want);
}

TEST(RecipeToml, TheExampleIsRead) {
  for (const auto& file : std::filesystem::directory_iterator(RANKLAB_RECIPES)) {
    const PrecisionRecipe recipe = read_recipe_toml(file.path().string());
    EXPECT_TRUE(recipe.linear.quantized()) << file.path();
    EXPECT_EQ(parse_recipe_toml(recipe_toml(recipe), "written.toml"), recipe);
  }
}

struct BadToml {
  const char* name;
  const char* text;
  std::vector<const char*> parts;
};
class RecipeTomlRefusal : public testing::TestWithParam<BadToml> {};

TEST_P(RecipeTomlRefusal, NamesFileLineAndWhatIsWanted) {
  try {
    parse_recipe_toml(GetParam().text, "bad.toml");
    FAIL() << "accepted";
  } catch (const Error& error) {
    for (const char* part : GetParam().parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

const BadToml kBad[] = {
    {"NotToml", "name = \"a\"\nname", {"bad.toml:2", "not TOML"}},
    {"UnknownKey", "\nmain_param = \"fp32\"", {"bad.toml:2", "'main_param'", "did you mean 'main_params'?"}},
    {"UnknownTable", "[activations]\nformat = \"e4m3\"", {"bad.toml:1", "did you mean 'activation'?"}},
    {"UnknownKeyOfATensor",
     "[weight]\nformat = \"e4m3\"\nblocks = 32",
     {"bad.toml:3", "'weight.blocks'", "did you mean 'block'?"}},
    {"UnknownFormat", "[weight]\nformat = \"e4m4\"", {"bad.toml:2", "weight.format", "did you mean 'e4m3'?"}},
    {"FormatOfScales", "[weight]\nformat = \"e8m0\"", {"weight.format cannot have this value", "one of none, e4m3"}},
    {"UnknownScale", "[weight]\nformat = \"e4m3\"\nscale = \"e8m0up\"", {"bad.toml:3", "did you mean 'e8m0_up'?"}},
    {"WrongType", "hadamard = 1", {"bad.toml:1", "hadamard has the wrong type", "true or false"}},
    {"WrongListType", "high_precision = [\"a\", 2]", {"a list of texts"}},
    {"TensorIsText", "weight = \"e4m3\"", {"a table: [weight]"}},
    {"TypeOfStates", "exp_avg = \"fp8\"", {"exp_avg cannot have this value", "one of fp32, bf16, fp16"}},
    {"UnknownBase", "base = \"mxfp9\"", {"bad.toml:1", "did you mean 'mxfp8'?"}},
    {"NoFormat", "[weight]\nblock = 32", {"[weight] has no format"}},
    {"TileWithoutBlock", "[weight]\nformat = \"e4m3\"\ngranularity = \"tile\"", {"weight.block", "1 or more"}},
    {"BlockOfATensor", "[weight]\nformat = \"e4m3\"\nblock = 4", {"no block: it applies to tiles and blocks"}},
    {"DelayedTiles",
     "base = \"mxfp8\"\n[weight]\nscale = \"delayed\"",
     {"weight has a scale from past steps", "granularity tile"}},
    {"E4m3ScaleOfATensor",
     "[weight]\nformat = \"e2m1\"\nscale = \"e4m3\"",
     {"weight has E4M3 scales", "granularity tensor"}},
    {"HopperSumsOfFp4", "base = \"nvfp4\"\nsum = \"hopper\"", {"sums in 14 bits"}},
    {"RequantizedNothing", "requantize_activation = true", {"requantize_activation"}},
    {"HadamardOfNothing", "hadamard = true", {"hadamard applies to quantized gradients"}},
    {"DispatchByBlocks",
     "base = \"deepseek_v3\"\n[dispatch]\ngranularity = \"block\"",
     {"scales of several tokens", "row or tile"}},
    {"DispatchWithAnyScale",
     "base = \"deepseek_v3\"\n[dispatch]\nscale = \"fp32\"",
     {"not powers of two", "scale fp32"}},
    {"DispatchByChance",
     "base = \"deepseek_v3\"\n[dispatch]\nrounding = \"stochastic\"",
     {"dispatch is rounded stochastically"}},
    {"GatherIn4Bits", "[gather]\nformat = \"e2m1\"", {"a byte a number", "format e2m1"}},
};
INSTANTIATE_TEST_SUITE_P(EveryOne, RecipeTomlRefusal, testing::ValuesIn(kBad),
                         [](const auto& bad) { return std::string(bad.param.name); });

}  // namespace
}  // namespace ranklab
