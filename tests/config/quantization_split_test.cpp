#include "core/config/quantization_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Settings = std::vector<std::pair<std::string, std::string>>;

// Hidden 256, heads 4 x 64, MLP 512, 8 ranks.
std::string resolved(const Settings& settings) {
  std::vector<ConfigSetting> list = {{"model.hidden_size", "256", "test"},
                                     {"model.num_attention_heads", "4", "test"},
                                     {"model.ffn_hidden_size", "512", "test"}};
  for (const auto& [key, text] : settings) list.push_back({key, text, "test"});
  try {
    resolve(merge_config({}, list).config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(QuantizationSplit, WholeBlocksOnEveryRankAreAccepted) {
  EXPECT_EQ(resolved({{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "2"}}), "accepted");
  EXPECT_EQ(resolved({{"precision.recipe", "mxfp8"}, {"parallel.tp", "4"}}), "accepted");
}

TEST(QuantizationSplit, OnOneRankBlocksMayEndAnywhere) {
  EXPECT_EQ(resolved({{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "1"}, {"model.ffn_hidden_size", "300"}}),
            "accepted");
}

TEST(QuantizationSplit, RanksAgreeOnScalesOfRowsAndTensors) {
  for (const char* recipe : {"fp8_delayed", "fp8_current", "fp8_rowwise"})
    EXPECT_EQ(resolved({{"precision.recipe", recipe}, {"parallel.tp", "4"}}), "accepted") << recipe;
}

TEST(QuantizationSplit, APartThatIsNoWholeBlockIsRefusedWithWhatFits) {
  const std::string error = resolved({{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "4"}});
  EXPECT_THAT(error,
              AllOf(HasSubstr("'layers.0.attention.qkv': out features 256 + 256 + 256 over --tp 4, blocks of 128"),
                    HasSubstr("each part in multiples of 128 x 4, as in 512"),
                    HasSubstr("use --tp 2 or --quantization-block-size 64, or raise --hidden-size")));
  EXPECT_EQ(resolved({{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "2"}}), "accepted");
  EXPECT_EQ(resolved({{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "4"}, {"precision.block_size", "64"}}),
            "accepted");
}

// q has 256 rows and fits; k and v have 128.
TEST(QuantizationSplit, FusedPartsAreCutEachOfItsOwn) {
  EXPECT_THAT(resolved({{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "2"}, {"model.num_query_groups", "2"}}),
              HasSubstr("out features 256 + 128 + 128 over --tp 2, blocks of 128"));
  EXPECT_THAT(resolved({{"precision.recipe", "deepseek_v3"},
                        {"precision.include", "*gate_up"},
                        {"parallel.tp", "2"},
                        {"model.ffn_hidden_size", "384"}}),
              AllOf(HasSubstr("'layers.0.mlp.gate_up': out features 384 + 384 over --tp 2"),
                    HasSubstr("or raise --ffn-hidden-size")));
}

// 4 heads of 96 beside a hidden size of 256; a gate of experts is not among what is quantized.
TEST(QuantizationSplit, HeadsOfAWidthOfTheirOwn) {
  const Settings wide = {{"precision.recipe", "deepseek_v3"}, {"parallel.tp", "2"}, {"model.kv_channels", "96"}};
  EXPECT_THAT(resolved(wide), AllOf(HasSubstr("out features 384 + 384 + 384 over --tp 2, blocks of 128"),
                                    HasSubstr("or raise --kv-channels")));
  Settings whole = wide;
  whole.back().second = "128";
  EXPECT_EQ(resolved(whole), "accepted");
  Settings gated = whole;
  gated.insert(gated.end(), {{"moe.num_experts", "4"},
                             {"moe.ffn_hidden_size", "128"},
                             {"moe.shared_ffn_hidden_size", "256"},
                             {"moe.shared_gate", "true"}});
  EXPECT_EQ(resolved(gated), "accepted");
}

TEST(QuantizationSplit, RowLayersCutWhatTheySumOver) {
  EXPECT_THAT(resolved({{"precision.recipe", "deepseek_v3"},
                        {"precision.include", "*mlp.down"},
                        {"parallel.tp", "2"},
                        {"model.ffn_hidden_size", "384"}}),
              HasSubstr("'layers.0.mlp.down': in features 384 over --tp 2, blocks of 128"));
}

TEST(QuantizationSplit, WhatIsNotQuantizedNeedsNoBlocks) {
  EXPECT_EQ(resolved({{"precision.recipe", "deepseek_v3"},
                      {"precision.exclude", "*mlp*"},
                      {"parallel.tp", "2"},
                      {"model.ffn_hidden_size", "384"}}),
            "accepted");
}

// Experts 32 wide over etp 2; their own flag says so.
TEST(QuantizationSplit, ExpertsAreCutOverTheirOwnAxis) {
  const Settings moe = {{"model.preset", "deepseek_v3_tiny"},
                        {"precision.recipe", "mxfp8"},
                        {"parallel.tp", "1"},
                        {"parallel.etp", "2"},
                        {"moe.ffn_hidden_size", "96"},
                        {"precision.include", "*experts*"}};
  EXPECT_THAT(resolved(moe), AllOf(HasSubstr("mlp.experts.0.gate_up': out features 96 + 96 over --etp 2"),
                                   HasSubstr("use --etp 1 or --quantization-block-size 16"),
                                   HasSubstr("raise --moe-ffn-hidden-size")));
}

// Latent attention's kv_down sees 128 / 4 positions of a microbatch of one sequence.
TEST(QuantizationSplit, WeightsOnEveryRankSumTheTokensOfTheirRank) {
  Settings latent = {{"model.preset", "deepseek_v3_tiny"},
                     {"precision.recipe", "deepseek_v3"},
                     {"parallel.tp", "4"},
                     {"precision.include", "*kv_down"},
                     {"train.micro_batch_size", "1"}};
  const std::string error = resolved(latent);
  EXPECT_THAT(error, AllOf(HasSubstr(".attention.kv_down': tokens of a microbatch 128 over --tp 4, blocks of 128"),
                           HasSubstr("use --tp 1 or --quantization-block-size 32, or raise --micro-batch-size")));
  latent.back().second = "4";
  EXPECT_EQ(resolved(latent), "accepted");
}

// 32 tokens over 4 ranks: a turn of 16 does not fit whatever the block.
TEST(QuantizationSplit, ATurnOfTokensNeedsSixteenOfThem) {
  const std::string error = resolved({{"model.preset", "deepseek_v3_tiny"},
                                      {"precision.recipe", "nvfp4"},
                                      {"parallel.tp", "4"},
                                      {"model.seq_length", "32"},
                                      {"precision.include", "*kv_down"},
                                      {"train.micro_batch_size", "1"}});
  EXPECT_THAT(error, AllOf(HasSubstr("tokens of a microbatch 32 over --tp 4, blocks of 16"),
                           HasSubstr("use --tp 2, or raise --micro-batch-size")));
}

}  // namespace
}  // namespace ranklab
