#include "core/precision/precision_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<PolicyModule> small_model() {
  return {{.name = "embedding", .linear = false},
          {.name = "layers.0.attention_norm", .linear = false},
          {.name = "layers.0.attention.qkv"},
          {.name = "layers.0.mlp.gate_up"},
          {.name = "layers.1.attention.qkv"},
          {.name = "layers.1.mlp.router", .linear = false},
          {.name = "layers.1.mlp.experts.0.gate_up"},
          {.name = "layers.1.mlp.experts.1.gate_up"},
          {.name = "head"}};
}

PrecisionPolicy policy(const PrecisionRules& rules, const std::string& recipe = "deepseek_v3") {
  return PrecisionPolicy(find_precision_recipe(recipe), rules, small_model());
}

std::vector<std::string> quantized(const PrecisionPolicy& policy) {
  std::vector<std::string> names;
  for (const ModulePrecision& module : policy.modules()) {
    if (module.linear.quantized()) names.push_back(module.module);
  }
  return names;
}

std::string rule_of(const PrecisionPolicy& policy, const std::string& module) {
  const ModulePrecision* found = policy.find(module);
  return found == nullptr ? "unknown" : found->rule;
}

TEST(PrecisionPolicy, OneTheRecipeQuantizesLinearModules) {
  const PrecisionPolicy all = policy({});
  EXPECT_THAT(quantized(all), ElementsAre("layers.0.attention.qkv", "layers.0.mlp.gate_up", "layers.1.attention.qkv",
                                          "layers.1.mlp.experts.0.gate_up", "layers.1.mlp.experts.1.gate_up"));
  EXPECT_EQ(all.find("layers.0.mlp.gate_up")->linear, find_precision_recipe("deepseek_v3").linear);
  EXPECT_EQ(rule_of(all, "layers.0.mlp.gate_up"), "recipe deepseek_v3");
  EXPECT_EQ(all.find("layers.1.mlp.router"), nullptr);
  EXPECT_EQ(all.find("embedding"), nullptr);
}

TEST(PrecisionPolicy, TwoIncludeAndExcludeSelect) {
  const PrecisionPolicy chosen = policy({.include = {"layers.0.*", "*experts.?.gate_up"}, .exclude = {"*.1.gate_up"}});
  EXPECT_THAT(quantized(chosen),
              ElementsAre("layers.0.attention.qkv", "layers.0.mlp.gate_up", "layers.1.mlp.experts.0.gate_up"));
  EXPECT_EQ(rule_of(chosen, "layers.0.attention.qkv"), "--low-precision-include 'layers.0.*'");
  EXPECT_EQ(rule_of(chosen, "layers.1.attention.qkv"), "not in --low-precision-include");
  EXPECT_EQ(rule_of(chosen, "layers.1.mlp.experts.1.gate_up"), "--low-precision-exclude '*.1.gate_up'");
  EXPECT_EQ(chosen.find("layers.1.attention.qkv")->compute, DType::kBFloat16);
}

TEST(PrecisionPolicy, ThreeWhatTheRecipeKeepsIsKeptWhateverWasIncluded) {
  const PrecisionPolicy all = policy({.include = {"*"}});
  EXPECT_FALSE(all.find("head")->linear.quantized());
  EXPECT_EQ(rule_of(all, "head"), "recipe deepseek_v3 keeps 'head'");
}

TEST(PrecisionPolicy, FourOfTypeRulesTheLastMatchWins) {
  const PrecisionPolicy typed =
      policy({.exclude = {"layers.*.qkv"},
              .compute_rules = {{"head", DType::kFloat16}, {"*qkv", DType::kFloat32}, {"he*", DType::kFloat32}}});
  EXPECT_EQ(typed.find("head")->compute, DType::kFloat32);
  EXPECT_EQ(rule_of(typed, "head"), "--module-compute-dtype-rule 'he*=fp32'");
  EXPECT_EQ(typed.find("layers.1.attention.qkv")->compute, DType::kFloat32);
  EXPECT_EQ(typed.find("layers.1.mlp.experts.0.gate_up")->compute, DType::kBFloat16);
}

TEST(PrecisionPolicy, FiveAnExactNameIsNotQuantizedAndBeatsARule) {
  const PrecisionPolicy typed = policy({.compute_rules = {{"layers.0.mlp.*", DType::kFloat16}},
                                        .compute_overrides = {{"layers.0.mlp.gate_up", DType::kFloat32}}});
  const ModulePrecision& module = *typed.find("layers.0.mlp.gate_up");
  EXPECT_FALSE(module.linear.quantized());
  EXPECT_EQ(module.compute, DType::kFloat32);
  EXPECT_EQ(module.rule, "--module-compute-dtype-override 'layers.0.mlp.gate_up=fp32'");
}

TEST(PrecisionPolicy, ARecipeWithoutFormatsLeavesTheTypeOfTheParameters) {
  const PrecisionPolicy plain = policy({.compute_rules = {{"head", DType::kFloat32}}}, "bf16");
  EXPECT_THAT(quantized(plain), ElementsAre());
  EXPECT_EQ(rule_of(plain, "layers.0.mlp.gate_up"), "recipe bf16");
  EXPECT_EQ(plain.find("head")->compute, DType::kFloat32);
}

struct Conflict {
  const char* name;
  PrecisionRules rules;
  std::vector<const char*> parts;
};

class PrecisionConflict : public testing::TestWithParam<Conflict> {};

TEST_P(PrecisionConflict, IsRefused) {
  try {
    policy(GetParam().rules);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    for (const char* part : GetParam().parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

const Conflict kConflicts[] = {
    {"IncludeMatchesNothing",
     {.include = {"*", "layers.*.mpl.gate_up"}},
     {"no module has a name like this pattern", "--low-precision-include 'layers.*.mpl.gate_up'",
      "did you mean 'layers.*.mlp.gate_up'?"}},
    {"ExcludeMatchesNothing", {.exclude = {"layers.7.*"}}, {"--low-precision-exclude 'layers.7.*'"}},
    {"RuleMatchesNothing",
     {.compute_rules = {{"hed", DType::kFloat32}}},
     {"--module-compute-dtype-rule 'hed=fp32'", "did you mean 'head'?"}},
    {"IncludeOfNormsOnly",
     {.include = {"*_norm"}},
     {"only modules without products", "--low-precision-include '*_norm', which is 'layers.0.attention_norm'"}},
    {"ExcludeOfTheRouter", {.exclude = {"*.router"}}, {"which is 'layers.1.mlp.router'"}},
    {"RuleForTheEmbedding", {.compute_rules = {{"embedding", DType::kFloat32}}}, {"which is 'embedding'"}},
    {"QuantizedAndWithAType",
     {.compute_rules = {{"layers.0.mlp.*", DType::kFloat32}}},
     {"cannot be quantized and have a type", "'layers.0.mlp.gate_up': quantized by recipe deepseek_v3",
      "--module-compute-dtype-rule 'layers.0.mlp.*=fp32'", "--low-precision-exclude"}},
    {"IncludedAndWithAType",
     {.include = {"*gate_up"}, .compute_rules = {{"*0.mlp.gate_up", DType::kFloat32}}},
     {"quantized by --low-precision-include '*gate_up'"}},
    {"OverrideOfAnUnknownName",
     {.compute_overrides = {{"layers.1.attention.qvk", DType::kFloat32}}},
     {"no module has this name", "did you mean 'layers.1.attention.qkv'?"}},
    {"OverrideIsNoPattern", {.compute_overrides = {{"layers.*.attention.qkv", DType::kFloat32}}}, {"no module has"}},
    {"OverrideOfTheRouter",
     {.compute_overrides = {{"layers.1.mlp.router", DType::kFloat32}}},
     {"no products of a precision to choose"}},
    {"OverriddenTwice",
     {.compute_overrides = {{"head", DType::kFloat32}, {"head", DType::kBFloat16}}},
     {"a type twice", "'head=fp32' and --module-compute-dtype-override 'head=bf16'"}},
    {"AllExcluded", {.exclude = {"*"}}, {"no module is left", "recipe deepseek_v3, 0 of 6 linear modules"}},
    {"OnlyKeptOnesIncluded", {.include = {"head"}}, {"no module is left"}},
};
INSTANTIATE_TEST_SUITE_P(EveryOne, PrecisionConflict, testing::ValuesIn(kConflicts),
                         [](const auto& conflict) { return std::string(conflict.param.name); });

TEST(PrecisionPolicy, TwoModulesOfOneNameAreRefused) {
  const std::vector<PolicyModule> twice = {{.name = "head"}, {.name = "head"}};
  EXPECT_THROW(PrecisionPolicy(find_precision_recipe("bf16"), {}, twice), Error);
}

TEST(PrecisionPolicy, PatternsAreGlobs) {
  EXPECT_TRUE(matches("layers.*.mlp.*", "layers.3.mlp.gate_up"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a.b.bc"));
  EXPECT_TRUE(matches("*a", "*a"));
  EXPECT_FALSE(matches("layers.?.mlp", "layers.12.mlp"));
  EXPECT_FALSE(matches("head", "heads"));
  EXPECT_FALSE(matches("", "head"));
  EXPECT_EQ(without_numbers("layers.12.mlp.experts.3.gate_up2"), "layers.*.mlp.experts.*.gate_up2");
}

}  // namespace
}  // namespace ranklab
