#include "core/precision/module_fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<std::string, int64_t>> folded(const std::vector<ModulePrecision>& modules) {
  std::vector<std::pair<std::string, int64_t>> lines;
  for (const ModuleGroup& group : fold_modules(modules)) lines.emplace_back(group.modules, group.count);
  return lines;
}

ModulePrecision module(const std::string& name, const std::string& rule = "recipe bf16") {
  return {.module = name, .rule = rule};
}

TEST(ModuleFold, LayersAndExpertsThatAgreeAreOneLine) {
  std::vector<ModulePrecision> modules;
  for (int layer = 1; layer <= 3; ++layer) {
    modules.push_back(module("layers." + std::to_string(layer) + ".qkv"));
    for (int expert = 0; expert < 11; ++expert)
      modules.push_back(module("layers." + std::to_string(layer) + ".experts." + std::to_string(expert) + ".up"));
  }
  modules.push_back(module("head"));
  EXPECT_THAT(folded(modules),
              ElementsAre(Pair("layers.1-3.qkv", 3), Pair("layers.1-3.experts.0-10.up", 33), Pair("head", 1)));
}

TEST(ModuleFold, WhatDiffersStandsAlone) {
  std::vector<ModulePrecision> modules;
  for (int layer = 0; layer < 4; ++layer) {
    for (int expert = 0; expert < 3; ++expert) {
      const bool other = layer == 2 && expert == 1;
      modules.push_back(module("layers." + std::to_string(layer) + ".experts." + std::to_string(expert) + ".up",
                               other ? "excluded" : "recipe bf16"));
    }
  }
  EXPECT_THAT(folded(modules), ElementsAre(Pair("layers.0-1,3.experts.0-2.up", 9), Pair("layers.2.experts.0,2.up", 2),
                                           Pair("layers.2.experts.1.up", 1)));
}

TEST(ModuleFold, Ranges) {
  EXPECT_EQ(ranges_text(std::vector<int64_t>{0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ranges_text({}), "");
}

}  // namespace
}  // namespace ranklab
