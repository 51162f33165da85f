#include "core/model/model_config.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/presets.h"

namespace ranklab {
namespace {

TEST(Presets, HavePublishedSizes) {
  EXPECT_EQ(model_preset("gpt2_124m").parameter_count(), 124'439'808);
  EXPECT_EQ(model_preset("llama_1b").parameter_count(), 1'235'814'400);
  EXPECT_EQ(model_preset("llama_8b").parameter_count(), 8'030'261'248);
}

TEST(Presets, AllAreValidOnOneRankAndWithTp) {
  for (const ModelPreset& preset : model_presets()) {
    EXPECT_NO_THROW(validate(preset.config, 1, false)) << preset.name;
    EXPECT_NO_THROW(validate(preset.config, 2, true)) << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
  }
  EXPECT_NO_THROW(validate(model_preset("peer_s"), 8, true));
  EXPECT_NO_THROW(validate(model_preset("gpt_tiny"), 8, true));
}

TEST(Presets, UnknownNamesTheNearest) {
  try {
    model_preset("llama_8");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("did you mean 'llama_8b'?"), std::string::npos) << error.what();
  }
}

TEST(TrainingFlops, IsSixTimesWeightsPlusCausalAttention) {
  // The peer benchmark's formula: 6 (layers (4 H^2 + 3 H F) + H V + layers S H).
  const ModelConfig c = model_preset("peer_s");
  EXPECT_DOUBLE_EQ(c.training_flops_per_token(128),
                   6.0 * (8 * (4 * 128 * 128 + 3 * 128 * 352) + 128 * 256 + 8 * 128 * 128));
}

std::string refusal(const ModelConfig& config, int tp, bool sequence_parallel = false) {
  try {
    validate(config, tp, sequence_parallel);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(Validate, NamesBothNumbersAndTheNearestLegalOnes) {
  ModelConfig c;
  EXPECT_EQ(
      refusal(c, 3),
      "[model] --num-attention-heads does not divide by --tp; got --num-attention-heads 8, --tp 3; want --tp in {1, "
      "2, 4, 8}; do: use --num-attention-heads 6 or 9");
  c.num_query_groups = 2;
  EXPECT_NE(refusal(c, 4).find("--num-query-groups 2, --tp 4"), std::string::npos);
  c = {.ffn_hidden_size = 350};
  EXPECT_NE(refusal(c, 4).find("--ffn-hidden-size 350, --tp 4"), std::string::npos);
  c = {.hidden_size = 100};
  EXPECT_NE(refusal(c, 1).find("--hidden-size 100, --num-attention-heads 8"), std::string::npos);
  c = {.seq_length = 30};
  EXPECT_EQ(refusal(c, 4), "accepted");
  EXPECT_NE(refusal(c, 4, true).find("--seq-length 30, --tp 4"), std::string::npos);
  c = {.hidden_size = 24};
  EXPECT_NE(refusal(c, 1).find("rotary pair"), std::string::npos);
  c = {.dropout = 1.0};
  EXPECT_NE(refusal(c, 1).find("--hidden-dropout is out of range; got 1;"), std::string::npos);
  c = {.num_layers = int64_t{1} << 62};  // the number of its parameters does not fit 64 bits
  EXPECT_NE(refusal(c, 1).find("--num-layers is out of range"), std::string::npos);
  c = {.num_query_groups = 3};
  EXPECT_NE(refusal(c, 1).find("--num-query-groups 3"), std::string::npos);
}

}  // namespace
}  // namespace ranklab
