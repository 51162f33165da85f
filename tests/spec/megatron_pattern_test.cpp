// Megatron-Core's patterns of hybrid models, letter by letter.
#include "core/spec/megatron_pattern.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

TEST(MegatronPattern, HasLayersStagesAndMtpModules) {
  const MegatronPattern pattern = parse_megatron_pattern("M-M*|ME-/*E/*E");
  EXPECT_EQ(pattern.mixers, "M-M*ME-");
  EXPECT_EQ(pattern.layers(), 7) << "without MTP modules";
  EXPECT_EQ(pattern.stages, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(pattern.mtp_modules, (std::vector<std::string>{"*E", "*E"}));
  EXPECT_FALSE(pattern.has_linear());
  EXPECT_EQ(parse_megatron_pattern("M-M*").stages, std::vector<int64_t>{}) << "the pattern does not set them";
  EXPECT_EQ(parse_megatron_pattern("").layers(), 0);
}

TEST(MegatronPattern, GatedDeltaNetsAreAttentionThatIsLinear) {
  const MegatronPattern pattern = parse_megatron_pattern("GM*G");
  EXPECT_EQ(pattern.mixers, "*M**");
  EXPECT_EQ(pattern.linear, (std::vector<bool>{true, false, false, true}));
  EXPECT_TRUE(pattern.has_linear());
}

TEST(MegatronPattern, NamesTheMtpModuleThatIsAnother) {
  EXPECT_EQ(other_mtp_module(parse_megatron_pattern("M*/*-/*-"), false), "");
  EXPECT_EQ(other_mtp_module(parse_megatron_pattern("M*/*-/MM"), false), "MM");
  EXPECT_EQ(other_mtp_module(parse_megatron_pattern("ME*/*E"), true), "");
  EXPECT_EQ(other_mtp_module(parse_megatron_pattern("ME*/*-"), true), "*-") << "the model has experts";
}

}  // namespace
}  // namespace ranklab
