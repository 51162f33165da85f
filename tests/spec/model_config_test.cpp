#include "core/spec/model_config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/spec/attention_span.h"
#include "core/spec/module_table.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

// One layer by hand: 4 query heads and 2 groups of 6 beside a hidden size of 16, with every option of the Qwen models.
TEST(ModuleTable, QwenByHand) {
  ModelConfig c{.num_layers = 1,
                .hidden_size = 16,
                .num_attention_heads = 4,
                .num_query_groups = 2,
                .kv_channels = 6,
                .vocab_size = 10,
                .add_qkv_bias = true,
                .qk_norm = true};
  c.moe = {.num_experts = 3, .topk = 1, .ffn_hidden_size = 5, .shared_ffn_hidden_size = 7, .shared_gate = true};
  const int64_t heads = (4 + 2 * 2) * 6, attention = heads * 16 + heads + 6 + 6 + 16 * 24;
  const int64_t mixture = 3 * 16 + 3 * 16 * 7 + 16 + 3 * (3 * 16 * 5);
  EXPECT_EQ(c.parameter_count(), 2 * 10 * 16 + 16 + 2 * 16 + attention + mixture);
  EXPECT_EQ(c.active_parameter_count(), c.parameter_count() - 2 * (3 * 16 * 5));
  EXPECT_EQ(kv_cache_elements_per_token(c), 2 * 2 * 6);
  // Scores and values of 4 heads of 6, causal; products with every matrix but the embedding.
  const double norms = 3 * 16 + heads + 6 + 6;
  const double matrices = static_cast<double>(c.active_parameter_count()) - 10 * 16 - norms;
  EXPECT_DOUBLE_EQ(count_model(c, 32).forward_flops_per_token, 2 * matrices + 32.0 * 4 * 2 * 6);
}

// One layer of each kind by hand, in the names of the paper: d 7168, d_c 512, d_c' 1536, 128 heads of 128 + 64.
TEST(ModuleTable, DeepSeekV3ByHand) {
  const ModelConfig c = model_preset("deepseek_v3");
  const int64_t attention = 7168 * 1536 + 1536 * 128 * (128 + 64) + 7168 * (512 + 64) + 512 * 128 * (128 + 128) +
                            128 * 128 * 7168 + 1536 + 512 + 7168;
  const int64_t expert = 3 * 7168 * 2048, router = 7168 * 256;
  const int64_t mixture = attention + 7168 + 257 * expert + router;
  const int64_t dense = attention + 7168 + 3 * 7168 * 18432;
  EXPECT_EQ(c.parameter_count(), 2 * 129280 * 7168 + 7168 + 3 * dense + 58 * mixture);
  EXPECT_EQ(c.active_parameter_count(), c.parameter_count() - 58 * (256 - 8) * expert);
  const ModelCounts counts = count_model(c, 4096);
  EXPECT_EQ(counts.mtp, 2 * 7168 * 7168 + 3 * 7168 + mixture);
  EXPECT_EQ(counts.mtp_active, counts.mtp - (256 - 8) * expert);
  // Two FLOPs for each weight of a product, the router's among them, and causal attention over 4096 positions.
  const double norms = 7168 + 61 * (2 * 7168 + 1536 + 512);
  const double products = static_cast<double>(counts.active - counts.embedding) - norms;
  EXPECT_DOUBLE_EQ(counts.forward_flops_per_token, 2 * products + 61.0 * 4096 * 128 * (192 + 128));
  EXPECT_DOUBLE_EQ(c.training_flops_per_token(4096),
                   3 * (counts.forward_flops_per_token + counts.mtp_forward_flops_per_token));
}

// A repeated MTP module has the weights of one and the products of several.
TEST(ModuleTable, CountsTheWeightsOfARepeatedModuleOnceAndEachUse) {
  ModelConfig one = model_preset("deepseek_v3_tiny"), three = one;
  one.mtp_num_layers = 1;
  three.mtp_num_layers = 3;
  ModelConfig repeated = three;
  repeated.mtp_use_repeated_layer = true;
  const auto counts = [](const ModelConfig& c) { return count_model(c, c.seq_length); };
  EXPECT_EQ(counts(repeated).mtp, counts(one).mtp);
  EXPECT_EQ(counts(repeated).mtp_active, counts(one).mtp_active);
  EXPECT_DOUBLE_EQ(counts(repeated).mtp_forward_flops_per_token, counts(three).mtp_forward_flops_per_token);
  EXPECT_DOUBLE_EQ(repeated.training_flops_per_token(64), three.training_flops_per_token(64));
  EXPECT_DOUBLE_EQ(flops_of_layers(repeated, 64).behind, flops_of_layers(three, 64).behind);
  EXPECT_TRUE(names_part_of_model(three, "mtp.1.proj.weight"));
  EXPECT_FALSE(names_part_of_model(repeated, "mtp.1.proj.weight"));
}

TEST(ModuleTable, KnowsTheNamesOfItsParts) {
  const ModelConfig model = model_preset("deepseek_v3_tiny");
  const std::string last = std::to_string(model.num_layers - 1), none = std::to_string(model.num_layers);
  for (const std::string& name :
       {std::string("embedding"), std::string("embedding.weight"), std::string("layers.0"), "layers." + last + ".mlp",
        "layers." + last + ".mlp.router.bias", "layers." + last + ".mlp.experts.0.down.weight", std::string("head")})
    EXPECT_TRUE(names_part_of_model(model, name)) << name;
  for (const std::string& name : {std::string(), std::string("nonsense"), std::string("layers.x.mlp"),
                                  "layers." + none + ".mlp", std::string("layers.0.mlp.experts.0"),
                                  "layers." + last + ".mlp.experts.99.down", std::string("embedding.weight.grad")})
    EXPECT_FALSE(names_part_of_model(model, name)) << name;
}

TEST(ModuleTable, DenseModelsUseAllOfThemselves) {
  for (const ModelPreset& preset : model_presets()) {
    if (preset.config.moe.enabled()) continue;
    const ModelCounts counts = count_model(preset.config, 1);
    EXPECT_EQ(counts.active, counts.total) << preset.name;
    EXPECT_EQ(counts.mtp, 0) << preset.name;
  }
  EXPECT_EQ(kv_cache_elements_per_token(model_preset("llama_8b")), 32 * 2 * 8 * 128);
}

TEST(TrainingFlops, IsSixTimesWeightsPlusCausalAttention) {
  // The peer benchmark's formula: 6 (layers (4 H^2 + 3 H F) + H V + layers S H).
  const ModelConfig c = model_preset("peer_s");
  EXPECT_DOUBLE_EQ(c.training_flops_per_token(128),
                   6.0 * (8 * (4 * 128 * 128 + 3 * 128 * 352) + 128 * 256 + 8 * 128 * 128));
}

std::string validate_error(const ModelConfig& config, int tp, bool sequence_parallel = false) {
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
      validate_error(c, 3),
      "[model] --num-attention-heads is not divisible by --tp; got --num-attention-heads 8, --tp 3; want --tp in {1, "
      "2, 4, 8}; do: use --num-attention-heads 6 or 9");
  c.num_query_groups = 2;
  EXPECT_EQ(validate_error(c, 4), "accepted") << "neighbours share a key/value head";
  c.kv_channels = 6;
  EXPECT_NE(validate_error(c, 8).find("--kv-channels 6, --tp / --num-query-groups 4"), std::string::npos);
  c = {.hidden_size = 96, .num_attention_heads = 12, .num_query_groups = 4};
  EXPECT_NE(validate_error(c, 6).find("--tp 6, --num-query-groups 4"), std::string::npos);
  c.num_query_groups = 3;
  EXPECT_NE(validate_error(c, 2).find("--num-query-groups 3, --tp 2"), std::string::npos);
  c = {.ffn_hidden_size = 350};
  EXPECT_NE(validate_error(c, 4).find("--ffn-hidden-size 350, --tp 4"), std::string::npos);
  c = {.hidden_size = 100};
  EXPECT_NE(validate_error(c, 1).find("--hidden-size 100, --num-attention-heads 8"), std::string::npos);
  c = {.seq_length = 30};
  EXPECT_EQ(validate_error(c, 4), "accepted");
  EXPECT_NE(validate_error(c, 4, true).find("--seq-length 30, --tp 4"), std::string::npos);
  c = {.hidden_size = 24};
  EXPECT_NE(validate_error(c, 1).find("rotary pair"), std::string::npos);
  c = {.dropout = 1.0};
  EXPECT_NE(validate_error(c, 1).find("--hidden-dropout is out of range; got 1;"), std::string::npos);
  c = {.num_layers = int64_t{1} << 62};  // the number of its parameters does not fit 64 bits
  EXPECT_NE(validate_error(c, 1).find("--num-layers is out of range"), std::string::npos);
  c = {.num_query_groups = 3};
  EXPECT_NE(validate_error(c, 1).find("--num-query-groups 3"), std::string::npos);
}

TEST(Validate, HeadsOfAnyEvenWidth) {
  EXPECT_EQ(validate_error({.hidden_size = 100, .kv_channels = 12}, 1), "accepted");  // 100 does not divide by 8 heads
  EXPECT_EQ(validate_error({.hidden_size = 100, .kv_channels = 13, .position = PositionKind::kLearned}, 1), "accepted");
  EXPECT_NE(validate_error({.kv_channels = 13}, 1).find("--kv-channels 13; want an even number"), std::string::npos);
  EXPECT_NE(validate_error({.kv_channels = -2}, 1).find("--kv-channels is out of range; got -2"), std::string::npos);
  EXPECT_NE(validate_error({.kv_channels = 1 << 20}, 1).find("--num-attention-heads x --kv-channels is out of range"),
            std::string::npos);
  EXPECT_EQ(validate_error({.norm = NormKind::kLayerNorm, .add_bias = true, .add_qkv_bias = true, .qk_norm = true}, 8),
            "accepted");
}

TEST(Validate, OneStretchOfPositionsWithSoundNumbers) {
  ModelConfig c;
  c.rope_scaling = {.kind = RopeScalingKind::kLlama3};
  EXPECT_EQ(validate_error(c, 8), "accepted");
  c.yarn.scaling_factor = 4;
  EXPECT_NE(validate_error(c, 1).find("--rope-scaling-type and YaRN both scale"), std::string::npos);
  c.rope_scaling = {};
  EXPECT_EQ(validate_error(c, 1), "accepted");  // YaRN of ordinary heads
  c.yarn.attention_factor = -1;
  EXPECT_NE(validate_error(c, 1).find("--yarn-attention-factor is out of range; got -1"), std::string::npos);
  c.yarn = {};
  c.rope_scaling = {.kind = RopeScalingKind::kLlama3, .low_freq_factor = 4};
  EXPECT_EQ(validate_error(c, 1), "accepted");  // as Llama 4 has them: nothing lies between
  c.rope_scaling.low_freq_factor = 5;
  EXPECT_NE(validate_error(c, 1).find("--rope-low-freq-factor is out of range; got 5"), std::string::npos);
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 0.5};
  EXPECT_NE(validate_error(c, 1).find("--rope-scaling-factor is out of range; got 0.5"), std::string::npos);
  c.rope_scaling = {.kind = RopeScalingKind::kDynamic};
  EXPECT_EQ(validate_error(c, 1), "accepted");
  c.kv_channels = 2;
  EXPECT_NE(validate_error(c, 1).find("heads with 2 rotated elements; want 4 or more"), std::string::npos);
}

TEST(Validate, LongRopeWantsANumberForEachPair) {
  ModelConfig c;  // heads of 16
  c.rope_scaling = {.kind = RopeScalingKind::kLongRope, .short_factors = std::vector<double>(8, 1.0)};
  EXPECT_NE(validate_error(c, 1).find("--rope-long-factors; got 0 numbers; want 8"), std::string::npos);
  c.rope_scaling.long_factors = std::vector<double>(8, 2.0);
  EXPECT_EQ(validate_error(c, 1), "accepted");
  c.rope_scaling.long_factors[3] = 0;
  EXPECT_NE(validate_error(c, 1).find("--rope-long-factors is out of range; got 0"), std::string::npos);
}

// Chunks of 3, 3 and 2: as many pairs as three sequences of these lengths.
TEST(ModelConfigTest, ChunksTakeFlopsAway) {
  EXPECT_DOUBLE_EQ(attention_span(8, 0, 3) * 8, 9 + 9 + 4);
  for (const int64_t chunk : {0, 8, 9}) EXPECT_DOUBLE_EQ(attention_span(8, 0, chunk), 8);
  // With a window of two in chunks of three: in each (1 + 2 + 2) keys where the causal half counts 1 + 2 + 3 as 9.
  EXPECT_DOUBLE_EQ(attention_span(6, 2, 3), attention_span(3, 2));
  ModelConfig c;
  const double whole = c.training_flops_per_token(128);
  c.attention_chunk = 32;
  c.window_layers = {.skip_freq = 4};  // three of four layers
  EXPECT_DOUBLE_EQ(whole - c.training_flops_per_token(128), 3.0 * 3 * 8 * (128 - 32) * 32);
}

// Rows of runs of layers that are alike, in their order; together what each layer has.
TEST(ModelConfigTest, LayersWithExpertsInTurn) {
  ModelConfig c = model_preset("llama4_tiny");
  c.num_layers = 5;
  c.moe.layers = {.pattern = {true, false, false}};
  std::map<int64_t, std::pair<int, int>> seen;  // dense and routed rows of each layer
  int64_t last = 0;
  for (const ModuleRow& row : module_table(c)) {
    if (!row.parameter.starts_with("layers.")) continue;
    EXPECT_GE(row.first_layer, last);
    last = row.first_layer;
    for (int64_t layer = row.first_layer; layer < row.first_layer + row.layers; ++layer) {
      if (row.parameter == "layers.*.mlp.gate_up.weight") ++seen[layer].first;
      if (row.parameter == "layers.*.mlp.router.weight") ++seen[layer].second;
    }
  }
  const std::pair dense{1, 0}, experts{0, 1};
  EXPECT_EQ(seen,
            (std::map<int64_t, std::pair<int, int>>{{0, experts}, {1, dense}, {2, dense}, {3, experts}, {4, dense}}));
  EXPECT_EQ(c.moe_layer_count(), 2);
  c.moe.first_dense_layers = 1;
  EXPECT_EQ(c.moe_layer_count(), 1);
}

TEST(ModelConfigTest, AWindowTakesFlopsAway) {
  // 4 positions attend to 1 + 2 + 2 + 2 keys where the causal half counts 1 + 2 + 3 + 4 as 8.
  EXPECT_DOUBLE_EQ(attention_span(4, 2), 3);
  EXPECT_DOUBLE_EQ(attention_span(4, 4), 4);
  EXPECT_DOUBLE_EQ(attention_span(4, 0), 4);
  EXPECT_DOUBLE_EQ(attention_span(4, 9), 4);
  ModelConfig c;
  const double whole = c.training_flops_per_token(128);
  c.window_size = 32;
  // Less by forward and twice backward, over layers and heads, (128 - 56) times the widths of a query and a value.
  EXPECT_DOUBLE_EQ(whole - c.training_flops_per_token(128), 3.0 * 4 * 8 * (128 - 56) * 32);
  c.window_size = -1;
  EXPECT_NE(validate_error(c, 1).find("--window-size is out of range; got -1"), std::string::npos);
  ModelConfig latent = model_preset("deepseek_v3_tiny");
  const double latent_whole = latent.training_flops_per_token(32);
  latent.window_size = 8;
  EXPECT_EQ(validate_error(latent, 1), "accepted");
  const int64_t widths = latent.num_attention_heads * (latent.mla.query_head_dim() + latent.mla.v_head_dim);
  const auto layers = static_cast<double>(latent.num_layers + latent.mtp_num_layers);
  EXPECT_DOUBLE_EQ(latent_whole - latent.training_flops_per_token(32),
                   3.0 * layers * (32 - attention_span(32, 8)) * static_cast<double>(widths));
}

TEST(ModelConfigTest, WindowsOfSomeLayers) {
  ModelConfig c;  // 4 layers
  c.window_size = 32;
  const auto windows = [&] {
    std::vector<int64_t> sizes;
    for (int64_t layer = 0; layer < 5; ++layer) sizes.push_back(c.window_of_layer(layer));
    return sizes;
  };
  EXPECT_EQ(windows(), (std::vector<int64_t>{32, 32, 32, 32, 32}));
  const double all = c.training_flops_per_token(128);
  c.window_layers = {.skip_freq = 2};
  EXPECT_EQ(windows(), (std::vector<int64_t>{32, 0, 32, 0, 32}));
  // Two of the four layers compute in full again.
  EXPECT_DOUBLE_EQ(c.training_flops_per_token(128) - all, 3.0 * 2 * 8 * (128 - 56) * 32);
  c.window_layers = {.pattern = {false, false, true}};
  EXPECT_EQ(windows(), (std::vector<int64_t>{0, 0, 32, 0, 0}));
  EXPECT_EQ(validate_error(c, 1), "accepted");
  c.window_layers = {.skip_freq = 1};
  EXPECT_NE(validate_error(c, 1).find("--window-attn-skip-freq is out of range; got 1"), std::string::npos);
}

// What latent attention shares with every other.
TEST(ModelConfigTest, LatentAttentionTakesBiasesNormsWindowsAndBounds) {
  ModelConfig latent = model_preset("deepseek_v3_tiny");
  latent.add_attention_bias = latent.add_qkv_bias = true;
  latent.norm = NormKind::kLayerNorm;
  latent.activation = ActivationKind::kGeGlu;
  latent.window_size = 8;
  latent.window_layers = {.skip_freq = 2};
  latent.query_pre_attn_scalar = 64;
  latent.attn_logit_softcapping = 50;
  EXPECT_EQ(validate_error(latent, 1), "accepted");
  latent.yarn = {};
  latent.position = PositionKind::kLearned;
  EXPECT_EQ(validate_error(latent, 1), "accepted");
  latent.window_size = -1;
  EXPECT_NE(validate_error(latent, 1).find("--window-size is out of range; got -1"), std::string::npos);
}

TEST(LayerPatternTest, PatternsAsMegatronWritesThem) {
  const auto text = [](const std::string& pattern) {
    const auto layers = parse_layer_pattern(pattern);
    return layers ? layer_pattern_text(*layers) : "none";
  };
  EXPECT_EQ(text("0"), "0");
  EXPECT_EQ(text("6"), "6");
  EXPECT_EQ(text("[0]*21 + [1]*7"), "[0]*21+[1]*7");
  EXPECT_EQ(text("([1]*3+[0]*1)*2"), "[1]*3+[0]+[1]*3+[0]");
  EXPECT_EQ(text("[1,1,0]"), "[1]*2+[0]");
  EXPECT_EQ(text("(([1]))"), "0");
  for (const char* wrong :
       {"", "-1", "2.5", "[2]", "[]", "[1", "[1]*", "[1]*0", "[1]**2", "[1]+", "(1)", "[1])", "x", "[1]0", "[1]*65537",
        "([0]*65536+[1])", "9999999999999999999999", "(((((((((([1]))))))))))"})
    EXPECT_EQ(text(wrong), "none") << wrong;
}

// Megatron-LM's --no-rope-freq has a 1 for each layer that lacks it.
TEST(LayerPatternTest, PatternsOfLayersThatLackIt) {
  const auto layers = parse_layer_pattern("([0]*3+[1])*2", PatternOne::kLacks);
  ASSERT_TRUE(layers.has_value());
  const LayerPattern every_fourth{.skip_freq = 4};
  for (int64_t layer = 0; layer < 20; ++layer) EXPECT_EQ(layers->has(layer), every_fourth.has(layer)) << layer;
  EXPECT_EQ(layer_pattern_text(*layers, PatternOne::kLacks), "[0]*3+[1]+[0]*3+[1]");
  EXPECT_EQ(parse_layer_pattern("4", PatternOne::kLacks), every_fourth);
  EXPECT_EQ(parse_layer_pattern("[0]*7", PatternOne::kLacks), LayerPattern{});
  EXPECT_EQ(parse_layer_pattern("[1]", PatternOne::kLacks)->has(3), false);
}

TEST(LayerPatternTest, TheShortestFormOfAList) {
  EXPECT_EQ(layer_pattern_of({true, true}), LayerPattern{});
  EXPECT_EQ(layer_pattern_of({true, false, true, false, true}), LayerPattern{.skip_freq = 2});
  EXPECT_EQ(layer_pattern_of({false, false}), LayerPattern{.skip_freq = 1});
  EXPECT_EQ(layer_pattern_of({true, true, false, true}), LayerPattern{.skip_freq = 3});
  const std::vector<bool> last{false, true, true}, uneven{true, false, true, true};
  EXPECT_EQ(layer_pattern_of(last), LayerPattern{.pattern = last});
  EXPECT_EQ(layer_pattern_of(uneven), LayerPattern{.pattern = uneven});
}

TEST(Validate, WholePairsOfAHeadTurn) {
  EXPECT_EQ(validate_error({.rotary_percent = 0.5}, 1), "accepted");  // 8 of 16
  EXPECT_NE(validate_error({.rotary_percent = 0.2}, 1).find("got 3 of 16 elements"), std::string::npos);
  EXPECT_NE(validate_error({.rotary_percent = 0.01}, 1).find("got 0 of 16 elements"), std::string::npos);
  EXPECT_NE(validate_error({.rotary_percent = 1.5}, 1).find("--rotary-percent is out of range"), std::string::npos);
  ModelConfig latent = model_preset("deepseek_v3_tiny");
  latent.rotary_percent = 0.5;
  EXPECT_NE(validate_error(latent, 1).find("got --rotary-percent 0.5, --kv-lora-rank"), std::string::npos);
}

TEST(Validate, QwensOptionsNeedWhatTheyWorkOn) {
  ModelConfig latent = model_preset("deepseek_v3_tiny");
  latent.kv_channels = 16;
  EXPECT_NE(validate_error(latent, 1).find("do not apply to it; got --kv-channels 16, --kv-lora-rank"),
            std::string::npos);
  latent.kv_channels = 0;
  latent.qk_norm = true;
  EXPECT_NE(validate_error(latent, 1).find("got --qk-layernorm, --kv-lora-rank"), std::string::npos);
  latent.qk_norm = false;
  latent.moe.shared_gate = true;
  EXPECT_EQ(validate_error(latent, 1), "accepted");
  latent.moe.shared_ffn_hidden_size = 0;  // nothing to scale
  EXPECT_EQ(validate_error(latent, 1), "accepted");
}

}  // namespace
}  // namespace ranklab
