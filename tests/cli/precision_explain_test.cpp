// ranklab precision recipes and explain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST(PrecisionRecipes, AreListedShownAndWritten) {
  EXPECT_EQ(data_of("precision recipes")["recipes"].size(), 10u);
  EXPECT_THAT(ranklab("precision recipes").output,
              ContainsRegex("deepseek_v3 +bf16 +bf16 bf16 +e4m3 1x128 +e4m3 128x128"));
  const auto recipe = data_of("precision recipes nvfp4");
  EXPECT_EQ(recipe["linear"]["weight"]["granularity"], "block");
  EXPECT_EQ(recipe["linear"]["gradient"]["rounding"], "stochastic");
  EXPECT_EQ(recipe["dispatch"], nullptr);
  EXPECT_THAT(ranklab("precision recipes deepseek_v3").output,
              AllOf(HasSubstr("high precision  head, *.router"), HasSubstr("tokens to experts e4m3 1x128")));
}

TEST(PrecisionRecipes, TheWrittenFileIsARecipe) {
  const std::string path = temporary_path("recipe.toml");
  std::ofstream(path) << ranklab("precision recipes mxfp4 --toml").output;
  EXPECT_EQ(data_of("precision recipes " + path), data_of("precision recipes mxfp4"));
  EXPECT_EQ(data_of("precision explain --precision-recipe " + path)["recipe"], data_of("precision recipes mxfp4"));
}

TEST(PrecisionExplain, SaysWhatEachModuleGotAndWhy) {
  const Outcome run = ranklab(
      "precision explain --preset deepseek_v3_tiny --precision-recipe mxfp8 --low-precision-exclude 'layers.0.*' "
      "--module-compute-dtype-override 'layers.3.mlp.experts.2.down=fp32'");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, AllOf(HasSubstr("recipe mxfp8: parameters bf16; 115 of 124 linear modules quantized"),
                                ContainsRegex("layers.0.mlp.down +bf16 .*--low-precision-exclude 'layers.0.\\*'"),
                                ContainsRegex("layers.1-4.mlp.experts.0-7.gate_up +e4m3 1x32 scale e8m0_up"),
                                ContainsRegex("layers.3.mlp.experts.0-1,3-7.down +e4m3"),
                                ContainsRegex("layers.3.mlp.experts.2.down +fp32 .*override"),
                                ContainsRegex("head +bf16 .*recipe mxfp8 keeps 'head'"),
                                HasSubstr("kept: master weights fp32, gradients fp32, moments fp32 and fp32"),
                                HasSubstr("sent: tokens to experts e4m3 1x32 scale e8m0_up, back bf16")));
}

TEST(PrecisionExplain, ChoosesModulesAndStates) {
  const auto data = data_of(
      "precision explain --preset deepseek_v3_tiny --precision-recipe deepseek_v3 --main-grads-dtype bf16 --module "
      "'layers.1.mlp.router'");
  EXPECT_EQ(data["exp_avg"], "bf16");
  EXPECT_EQ(data["main_grads"], "bf16");
  ASSERT_EQ(data["modules"].size(), 1u);
  EXPECT_EQ(data["modules"][0]["quantized"], false);
  EXPECT_THAT(data["modules"][0]["rule"].get<std::string>(), HasSubstr("not a linear layer"));
  const auto one = data_of("precision explain --fp8 --module layers.2.mlp.down");
  EXPECT_EQ(one["modules"][0]["linear"]["gradient"]["format"], "e5m2");
  EXPECT_EQ(one["modules"][0]["rule"], "recipe fp8_delayed");
  EXPECT_EQ(one["quantized_modules"], 16);
}

TEST(PrecisionExplain, WithoutSettingsAllIsInTheTypeOfTheParameters) {
  const auto data = data_of("precision explain");
  EXPECT_EQ(data["quantized_modules"], 0);
  EXPECT_EQ(data["linear_modules"], 17);
  EXPECT_EQ(data["modules"][0]["compute"], "fp32");
}

}  // namespace
}  // namespace ranklab
