// The presets have the sizes that their models' papers and files publish, and can be trained.
#include "core/spec/presets.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

TEST(Presets, HavePublishedSizes) {
  EXPECT_EQ(model_preset("gpt2_124m").parameter_count(), 124'439'808);
  EXPECT_EQ(model_preset("llama_1b").parameter_count(), 1'235'814'400);
  EXPECT_EQ(model_preset("llama_8b").parameter_count(), 8'030'261'248);
  EXPECT_EQ(model_preset("llama_70b").parameter_count(), 70'553'706'496);
}

// Elements of the safetensors files on Hugging Face; the name of the last one counts 30.5B of which 3.3B are active.
TEST(Presets, Qwen3HavePublishedCounts) {
  EXPECT_EQ(model_preset("qwen3_0.6b").parameter_count(), 596'049'920);
  EXPECT_EQ(model_preset("qwen3_8b").parameter_count(), 8'190'735'360);
  const ModelConfig c = model_preset("qwen3_30b_a3b");
  EXPECT_EQ(c.parameter_count(), 30'532'122'624);
  EXPECT_NEAR(static_cast<double>(c.active_parameter_count()), 3.3e9, 0.1e9);
  EXPECT_EQ(kv_cache_elements_per_token(c), 48 * 2 * 4 * 128);
}

// What the models' pages on huggingface.co name.
TEST(Presets, ThoseThatManyPlanHavePublishedCounts) {
  EXPECT_EQ(model_preset("llama_405b").parameter_count(), 405'853'388'800);
  EXPECT_EQ(model_preset("mixtral_8x7b").parameter_count(), 46'702'792'704);
  EXPECT_EQ(model_preset("qwen3_32b").parameter_count(), 32'762'123'264);
  EXPECT_EQ(model_preset("qwen3_235b_a22b").parameter_count(), 235'093'634'560);
  EXPECT_NEAR(static_cast<double>(model_preset("qwen3_235b_a22b").active_parameter_count()), 22.2e9, 0.1e9);
  // arXiv 2405.04434, appendix B: 15.7B and 2.4B, embedding aside.
  const ModelConfig& lite = model_preset("deepseek_v2_lite");
  EXPECT_NEAR(static_cast<double>(lite.parameter_count()), 15.7e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(lite.active_parameter_count() - lite.vocab_size * lite.hidden_size), 2.4e9, 0.1e9);
  // arXiv 2405.04434, section 3.1.2: 236B and 21B.
  EXPECT_NEAR(static_cast<double>(model_preset("deepseek_v2").parameter_count()), 236e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(model_preset("deepseek_v2").active_parameter_count()), 21e9, 0.6e9);
  // arXiv 2507.20534, table 1: 1.04T and 32.6B.
  EXPECT_NEAR(static_cast<double>(model_preset("kimi_k2").parameter_count()), 1.04e12, 0.015e12);
  EXPECT_NEAR(static_cast<double>(model_preset("kimi_k2").active_parameter_count()), 32.6e9, 0.5e9);
}

// arXiv 2508.06471, table 1: 355B and 106B with 32B and 12B active, embedding aside.
TEST(Presets, Glm45HasPublishedCounts) {
  const auto billions = [](int64_t count) { return static_cast<double>(count) / 1e9; };
  for (const auto& [name, total, active] : {std::tuple{"glm4_5", 355.0, 32.0}, std::tuple{"glm4_5_air", 106.0, 12.0}}) {
    const ModelConfig& c = model_preset(name);
    EXPECT_NEAR(billions(c.parameter_count()), total, 0.01 * total);
    EXPECT_NEAR(billions(c.active_parameter_count() - c.vocab_size * c.hidden_size), active, 1);
  }
}

// arXiv 2508.10925, table 1; huggingface.co/openai/gpt-oss-20b names 20,914,757,184. Its active ones are without the
// embedding.
TEST(Presets, GptOssHasPublishedCounts) {
  EXPECT_EQ(model_preset("gpt_oss_20b").parameter_count(), 20'914'757'184);
  EXPECT_EQ(model_preset("gpt_oss_120b").parameter_count(), 116'829'156'672);
  const auto active = [](const char* name) {
    const ModelConfig& c = model_preset(name);
    return static_cast<double>(c.active_parameter_count() - c.vocab_size * c.hidden_size);
  };
  EXPECT_NEAR(active("gpt_oss_20b"), 3.61e9, 0.005e9);
  EXPECT_NEAR(active("gpt_oss_120b"), 5.13e9, 0.005e9);
}

// huggingface.co/meta-llama/Llama-4-Scout-17B-16E: 109B and 400B with the model of pictures, 17B active.
TEST(Presets, Llama4HasPublishedCounts) {
  const auto billions = [](int64_t count) { return static_cast<double>(count) / 1e9; };
  for (const auto& [name, total] : {std::pair{"llama4_scout", 109.0}, std::pair{"llama4_maverick", 400.0}}) {
    const ModelConfig& c = model_preset(name);
    EXPECT_NEAR(billions(c.parameter_count()), total, 0.015 * total);
    EXPECT_NEAR(billions(c.active_parameter_count()), 17, 0.5);
  }
  EXPECT_EQ(model_preset("llama4_scout").moe_layer_count(), 48);
  EXPECT_EQ(model_preset("llama4_maverick").moe_layer_count(), 24);
}

// arXiv 2412.19437: 671B parameters, 37B of them active; the weights on Hugging Face, 685B, repeat the embedding and
// the head in the MTP module. arXiv 2505.09343, table 1: a token's KV cache is 70.272 KB in bf16.
TEST(Presets, DeepSeekV3HasPublishedCounts) {
  const ModelConfig c = model_preset("deepseek_v3");
  const ModelCounts counts = count_model(c, c.seq_length);
  EXPECT_EQ(counts.total, 671'026'404'352);
  EXPECT_EQ(counts.total, c.parameter_count());
  EXPECT_EQ(counts.active, 37'552'282'624);
  EXPECT_EQ(counts.active, c.active_parameter_count());
  EXPECT_EQ(counts.embedding, 129280 * 7168);
  EXPECT_NEAR(static_cast<double>(counts.active - counts.embedding), 36.6e9, 0.1e9);
  EXPECT_EQ(counts.total + counts.mtp + 2 * counts.embedding, 684'489'830'400);
  EXPECT_EQ(kv_cache_elements_per_token(c) * 2, 70'272);
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

}  // namespace
}  // namespace ranklab
