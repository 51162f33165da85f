// Element for element: where each number of ours stands in their files. The formulas are written out once more here,
// from the classes of transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>

#include "core/checkpoint/hf/folder.h"
#include "tests/checkpoint/hf_models.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of hf_models.h
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// A model written as a Hugging Face folder, and read back as plain tensors.
struct Exported {
  explicit Exported(const ModelConfig& config, const std::string& name)
      : ours(counted_weights(config)), path(temporary_path("hf_" + name)) {
    export_hf(ours, config, path, {.durable = false});
    theirs = std::make_unique<HfFolder>(path);
  }
  std::vector<float> our(const std::string& parameter) const { return floats(ours, "weight/" + parameter); }
  std::vector<float> their(const std::string& name) const { return floats(*theirs, name); }
  std::vector<int64_t> shape(const std::string& name) const { return theirs->tensor(name).shape; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const TensorInfo& tensor : theirs->tensors()) all.push_back(tensor.name);
    return all;
  }
  MemoryTensors ours;
  std::string path;
  std::unique_ptr<HfFolder> theirs;
};

std::vector<float> rows(const std::vector<float>& matrix, size_t columns, size_t begin, size_t end) {
  return {matrix.begin() + static_cast<std::ptrdiff_t>(begin * columns),
          matrix.begin() + static_cast<std::ptrdiff_t>(end * columns)};
}

// A model trained in FP8 with delayed scaling has the recipe's numbers beside its weights.
TEST(HfMapping, HistoriesOfDelayedScalingStayBehind) {
  MemoryTensors ours = counted_weights(tiny_llama());
  ours.add("buffer/layers.1.mlp.down.amax_history", {3, 16});
  const std::string path = temporary_path("hf_amax_history");
  export_hf(ours, tiny_llama(), path, {.durable = false});
  const Exported without(tiny_llama(), "without_amax_history");
  EXPECT_EQ(HfFolder(path).tensors().size(), without.theirs->tensors().size());
}

TEST(HfMapping, LlamasQueriesKeysValuesGateAndUpAreRowsOfOurs) {
  const Exported e(tiny_llama(), "llama");
  const auto qkv = e.our("layers.1.attention.qkv.weight");  // 8 + 4 + 4 rows of 8
  const std::string layer = "model.layers.1.";
  EXPECT_EQ(e.their(layer + "self_attn.q_proj.weight"), rows(qkv, 8, 0, 8));
  EXPECT_EQ(e.their(layer + "self_attn.k_proj.weight"), rows(qkv, 8, 8, 12));
  EXPECT_EQ(e.their(layer + "self_attn.v_proj.weight"), rows(qkv, 8, 12, 16));
  EXPECT_THAT(e.shape(layer + "self_attn.k_proj.weight"), ElementsAre(4, 8));
  const auto gate_up = e.our("layers.1.mlp.gate_up.weight");
  EXPECT_EQ(e.their(layer + "mlp.gate_proj.weight"), rows(gate_up, 8, 0, 3));
  EXPECT_EQ(e.their(layer + "mlp.up_proj.weight"), rows(gate_up, 8, 3, 6));
  EXPECT_EQ(e.their(layer + "mlp.down_proj.weight"), e.our("layers.1.mlp.down.weight"));
  EXPECT_EQ(e.their(layer + "self_attn.o_proj.weight"), e.our("layers.1.attention.out.weight"));
  EXPECT_EQ(e.their(layer + "input_layernorm.weight"), e.our("layers.1.attention_norm.weight"));
  EXPECT_EQ(e.their(layer + "post_attention_layernorm.weight"), e.our("layers.1.mlp_norm.weight"));
  EXPECT_EQ(e.their("model.embed_tokens.weight"), e.our("embedding.weight"));
  EXPECT_EQ(e.their("model.norm.weight"), e.our("final_norm.weight"));
  EXPECT_EQ(e.their("lm_head.weight"), e.our("head.weight"));
  EXPECT_EQ(e.names().size(), 3u + 2 * 9);
}

TEST(HfMapping, BiasesOfLlamaAreCutLikeTheirMatrices) {
  ModelConfig config = tiny_llama();
  config.add_bias = config.tie_embeddings = true;
  const Exported e(config, "llama_bias");
  EXPECT_EQ(e.their("model.layers.0.self_attn.v_proj.bias"), rows(e.our("layers.0.attention.qkv.bias"), 1, 12, 16));
  EXPECT_EQ(e.their("model.layers.0.mlp.down_proj.bias"), e.our("layers.0.mlp.down.bias"));
  EXPECT_THAT(e.names(), Not(Contains("lm_head.weight")));  // tied
}

// Heads of 8 rows, of which the first 4 turn as pairs (0, 2), (1, 3): here pairs are four rows apart, and the first two
// turn.
TEST(HfMapping, OfHeadsThatTurnInPartTheHalvesComeApart) {
  const std::vector<size_t> place = {0, 1, 4, 5, 2, 3, 6, 7};
  const Exported stablelm(tiny_stablelm(), "stablelm"), phi(tiny_partly(), "phi3");
  const auto weight = stablelm.our("layers.1.attention.qkv.weight"), bias = stablelm.our("layers.1.attention.qkv.bias");
  const std::string layer = "model.layers.1.self_attn.";
  for (size_t row = 0; row < 8; ++row) {
    const size_t ours = place[row];
    EXPECT_EQ(rows(stablelm.their(layer + "q_proj.weight"), 16, 8 + row, 9 + row),
              rows(weight, 16, 8 + ours, 9 + ours));
    EXPECT_EQ(rows(stablelm.their(layer + "k_proj.weight"), 16, row, row + 1), rows(weight, 16, 16 + ours, 17 + ours));
    EXPECT_EQ(rows(stablelm.their(layer + "k_proj.bias"), 1, row, row + 1), rows(bias, 1, 16 + ours, 17 + ours));
  }
  EXPECT_EQ(stablelm.their(layer + "v_proj.weight"), rows(weight, 16, 24, 32));
  EXPECT_EQ(stablelm.their(layer + "v_proj.bias"), rows(bias, 1, 24, 32));
  const auto fused = phi.our("layers.0.attention.qkv.weight");
  const auto theirs = phi.their("model.layers.0.self_attn.qkv_proj.weight");
  for (size_t row = 0; row < 32; ++row) {
    const size_t ours = row < 24 ? row / 8 * 8 + place[row % 8] : row;  // values stay
    EXPECT_EQ(rows(theirs, 16, row, row + 1), rows(fused, 16, ours, ours + 1)) << row;
  }
  EXPECT_EQ(phi.their("model.layers.0.mlp.gate_up_proj.weight"), phi.our("layers.0.mlp.gate_up.weight"));
}

TEST(HfMapping, Gpt2HasItsMatricesTransposed) {
  const Exported e(tiny_gpt2(), "gpt2");
  const auto ours = e.our("layers.0.attention.qkv.weight");  // [12, 4]
  const auto theirs = e.their("transformer.h.0.attn.c_attn.weight");
  EXPECT_THAT(e.shape("transformer.h.0.attn.c_attn.weight"), ElementsAre(4, 12));
  for (size_t out = 0; out < 12; ++out) {
    for (size_t in = 0; in < 4; ++in) EXPECT_EQ(theirs.at(in * 12 + out), ours.at(out * 4 + in)) << out << " " << in;
  }
  EXPECT_THAT(e.shape("transformer.h.1.mlp.c_fc.weight"), ElementsAre(4, 6));
  EXPECT_EQ(e.their("transformer.h.0.attn.c_attn.bias"), e.our("layers.0.attention.qkv.bias"));
  EXPECT_EQ(e.their("transformer.h.1.ln_2.bias"), e.our("layers.1.mlp_norm.bias"));
  EXPECT_EQ(e.their("transformer.wpe.weight"), e.our("position.weight"));
  EXPECT_THAT(e.names(), Not(Contains("lm_head.weight")));
}

TEST(HfMapping, ExpertsOfMixtralKeepTheirNumbers) {
  const Exported e(tiny_mixtral(), "mixtral");
  for (const char* expert : {"0", "1", "2"}) {
    const std::string ours = std::string("layers.1.mlp.experts.") + expert + ".";
    const std::string theirs = std::string("model.layers.1.block_sparse_moe.experts.") + expert + ".";
    EXPECT_EQ(e.their(theirs + "w1.weight"), rows(e.our(ours + "gate_up.weight"), 8, 0, 5));
    EXPECT_EQ(e.their(theirs + "w3.weight"), rows(e.our(ours + "gate_up.weight"), 8, 5, 10));
    EXPECT_EQ(e.their(theirs + "w2.weight"), e.our(ours + "down.weight"));
  }
  EXPECT_EQ(e.their("model.layers.0.block_sparse_moe.gate.weight"), e.our("layers.0.mlp.router.weight"));
}

// 4 query heads and 2 key heads of 6 rows each, over a hidden size of 8.
TEST(HfMapping, HeadsAndTheirNormsOfQwen3) {
  const Exported e(tiny_qwen3(), "qwen3");
  const std::string layer = "model.layers.1.self_attn.";
  const auto qkv = e.our("layers.1.attention.qkv.weight");
  EXPECT_EQ(e.their(layer + "q_proj.weight"), rows(qkv, 8, 0, 24));
  EXPECT_EQ(e.their(layer + "k_proj.weight"), rows(qkv, 8, 24, 36));
  EXPECT_EQ(e.their(layer + "v_proj.weight"), rows(qkv, 8, 36, 48));
  EXPECT_THAT(e.shape(layer + "o_proj.weight"), ElementsAre(8, 24));
  EXPECT_THAT(e.shape(layer + "k_norm.weight"), ElementsAre(6));
  EXPECT_EQ(e.their(layer + "q_norm.weight"), e.our("layers.1.attention.q_norm.weight"));
  EXPECT_EQ(e.their(layer + "k_norm.weight"), e.our("layers.1.attention.k_norm.weight"));
  EXPECT_EQ(e.names().size(), 3u + 2 * 11);
}

TEST(HfMapping, NormsOfOlmo2StandBehindAndGoOverAllHeads) {
  const Exported e(tiny_olmo2(), "olmo2");
  const std::string layer = "model.layers.1.";
  EXPECT_EQ(e.their(layer + "post_attention_layernorm.weight"), e.our("layers.1.attention_post_norm.weight"));
  EXPECT_EQ(e.their(layer + "post_feedforward_layernorm.weight"), e.our("layers.1.mlp_post_norm.weight"));
  EXPECT_EQ(e.their(layer + "self_attn.q_norm.weight"), e.our("layers.1.attention.q_norm.weight"));
  EXPECT_THAT(e.shape(layer + "self_attn.q_norm.weight"), ElementsAre(8));
  EXPECT_THAT(e.shape(layer + "self_attn.k_norm.weight"), ElementsAre(4));
  EXPECT_EQ(e.names().size(), 3u + 2 * 11);
}

TEST(HfMapping, NormsOfGemmaStandBeforeAndBehind) {
  const Exported e(tiny_gemma3(), "gemma3");
  const std::string theirs = "model.layers.1.", ours = "layers.1.";
  EXPECT_EQ(e.their(theirs + "input_layernorm.weight"), e.our(ours + "attention_norm.weight"));
  EXPECT_EQ(e.their(theirs + "post_attention_layernorm.weight"), e.our(ours + "attention_post_norm.weight"));
  EXPECT_EQ(e.their(theirs + "pre_feedforward_layernorm.weight"), e.our(ours + "mlp_norm.weight"));
  EXPECT_EQ(e.their(theirs + "post_feedforward_layernorm.weight"), e.our(ours + "mlp_post_norm.weight"));
  EXPECT_EQ(e.their(theirs + "self_attn.k_norm.weight"), e.our(ours + "attention.k_norm.weight"));
  EXPECT_EQ(e.their(theirs + "mlp.up_proj.weight"), rows(e.our(ours + "mlp.gate_up.weight"), 8, 3, 6));
  EXPECT_EQ(e.names().size(), 2u + 2 * 13);  // tied
}

// 2 heads of 8 rows, each with its query, key and value behind one another; of a head the first 4 rows turn.
TEST(HfMapping, HeadsOfGptNeoxHaveQueryKeyAndValueTogether) {
  const Exported e(tiny_gpt_neox(), "gpt_neox");
  const std::vector<size_t> place = {0, 1, 4, 5, 2, 3, 6, 7};
  const auto ours = e.our("layers.1.attention.qkv.weight"), bias = e.our("layers.1.attention.qkv.bias");
  const auto theirs = e.their("gpt_neox.layers.1.attention.query_key_value.weight");
  const auto their_bias = e.their("gpt_neox.layers.1.attention.query_key_value.bias");
  for (size_t head = 0; head < 2; ++head) {
    for (size_t kind = 0; kind < 3; ++kind) {
      for (size_t row = 0; row < 8; ++row) {
        const size_t to = head * 24 + kind * 8 + row, from = kind * 16 + head * 8 + (kind < 2 ? place[row] : row);
        EXPECT_EQ(rows(theirs, 16, to, to + 1), rows(ours, 16, from, from + 1)) << head << " " << kind << " " << row;
        EXPECT_EQ(their_bias.at(to), bias.at(from));
      }
    }
  }
  EXPECT_EQ(e.their("gpt_neox.layers.0.post_attention_layernorm.bias"), e.our("layers.0.mlp_norm.bias"));
  EXPECT_EQ(e.their("gpt_neox.layers.0.mlp.dense_h_to_4h.weight"), e.our("layers.0.mlp.up.weight"));
  EXPECT_EQ(e.their("embed_out.weight"), e.our("head.weight"));
  EXPECT_EQ(e.names().size(), 4u + 2 * 12);
}

TEST(HfMapping, PhiHasOneNormALayerAndABiasOfItsHead) {
  const Exported e(tiny_phi2(), "phi2");
  EXPECT_EQ(e.their("lm_head.bias"), e.our("head.bias"));
  EXPECT_EQ(e.their("model.layers.1.input_layernorm.bias"), e.our("layers.1.attention_norm.bias"));
  EXPECT_EQ(e.their("model.layers.1.self_attn.dense.weight"), e.our("layers.1.attention.out.weight"));
  EXPECT_EQ(e.their("model.layers.1.mlp.fc2.bias"), e.our("layers.1.mlp.down.bias"));
  EXPECT_EQ(e.names().size(), 5u + 2 * 14);
}

TEST(HfMapping, BiasesOfQwen2AreThoseOfQueriesKeysAndValues) {
  const Exported e(tiny_qwen2(), "qwen2");
  const auto ours = e.our("layers.1.attention.qkv.bias");
  EXPECT_EQ(e.their("model.layers.1.self_attn.q_proj.bias"), rows(ours, 1, 0, 8));
  EXPECT_EQ(e.their("model.layers.1.self_attn.k_proj.bias"), rows(ours, 1, 8, 12));
  EXPECT_EQ(e.their("model.layers.1.self_attn.v_proj.bias"), rows(ours, 1, 12, 16));
  EXPECT_THAT(e.names(), Not(Contains("model.layers.1.self_attn.o_proj.bias")));
  EXPECT_EQ(e.names().size(), 2u + 2 * 12);  // tied
}

TEST(HfMapping, ExpertsOfQwenAndTheGateOfTheSharedOne) {
  const Exported e(tiny_qwen2_moe(), "qwen2_moe");
  const std::string ours = "layers.1.mlp.", theirs = "model.layers.1.mlp.";
  EXPECT_EQ(e.their(theirs + "experts.2.up_proj.weight"), rows(e.our(ours + "experts.2.gate_up.weight"), 8, 5, 10));
  EXPECT_EQ(e.their(theirs + "experts.0.down_proj.weight"), e.our(ours + "experts.0.down.weight"));
  EXPECT_EQ(e.their(theirs + "gate.weight"), e.our(ours + "router.weight"));
  EXPECT_EQ(e.their(theirs + "shared_expert.gate_proj.weight"), rows(e.our(ours + "shared.gate_up.weight"), 8, 0, 7));
  EXPECT_EQ(e.their(theirs + "shared_expert.up_proj.weight"), rows(e.our(ours + "shared.gate_up.weight"), 8, 7, 14));
  EXPECT_EQ(e.their(theirs + "shared_expert.down_proj.weight"), e.our(ours + "shared.down.weight"));
  EXPECT_EQ(e.their(theirs + "shared_expert_gate.weight"), e.our(ours + "shared_gate.weight"));
  EXPECT_THAT(e.shape(theirs + "shared_expert_gate.weight"), ElementsAre(1, 8));
}

TEST(HfMapping, DenseFirstLayersOfQwen3MoeAreLlamas) {
  const Exported e(tiny_qwen3_moe(), "qwen3_moe");
  EXPECT_EQ(e.their("model.layers.0.mlp.up_proj.weight"), rows(e.our("layers.0.mlp.gate_up.weight"), 8, 3, 6));
  EXPECT_EQ(e.their("model.layers.1.mlp.experts.1.gate_proj.weight"),
            rows(e.our("layers.1.mlp.experts.1.gate_up.weight"), 8, 0, 5));
  EXPECT_THAT(e.names(), Not(Contains("model.layers.0.mlp.gate.weight")));
}

// Their rotated row 2i is our row i, their row 2i + 1 our row i + rope / 2; nope = 3, rope = 6.
TEST(HfMapping, RowsThatTurnAreNeighboursInDeepSeek) {
  const Exported e(tiny_deepseek(), "deepseek");
  const auto ours = e.our("layers.1.attention.q_up.weight");
  const auto theirs = e.their("model.layers.1.self_attn.q_b_proj.weight");
  const std::vector<size_t> turned = {0, 3, 1, 4, 2, 5};  // of ours, by theirs
  for (size_t head = 0; head < 2; ++head) {
    const size_t first = head * 9;
    EXPECT_EQ(rows(theirs, 4, first, first + 3), rows(ours, 4, first, first + 3));
    for (size_t row = 0; row < 6; ++row) {
      const size_t from = first + 3 + turned[row], to = first + 3 + row;
      EXPECT_EQ(rows(theirs, 4, to, to + 1), rows(ours, 4, from, from + 1)) << head << " " << row;
    }
  }
  const auto kv = e.our("layers.0.attention.kv_down.weight");  // 5 + 6 rows
  const auto their_kv = e.their("model.layers.0.self_attn.kv_a_proj_with_mqa.weight");
  EXPECT_EQ(rows(their_kv, 6, 0, 5), rows(kv, 6, 0, 5));
  for (size_t row = 0; row < 6; ++row)
    EXPECT_EQ(rows(their_kv, 6, 5 + row, 6 + row), rows(kv, 6, 5 + turned[row], 6 + turned[row])) << row;
  EXPECT_EQ(e.their("model.layers.1.self_attn.kv_b_proj.weight"), e.our("layers.1.attention.kv_up.weight"));
}

// A model that rotates adjacent elements (--rotary-interleaved), in families that rotate halves and in DeepSeek's.
TEST(HfMapping, PairsBecomeHalvesWhereAFamilyHasHalves) {
  ModelConfig whole = tiny_qwen3(), half = tiny_partly(), pairs = tiny_deepseek(), halves = tiny_halves();
  for (ModelConfig* c : {&whole, &half, &pairs, &halves}) c->rotary_interleaved = true;
  const auto expect_rows = [](const std::vector<float>& theirs, const std::vector<float>& ours, size_t columns,
                              size_t first, const std::vector<size_t>& order) {
    for (size_t row = 0; row < order.size(); ++row)
      EXPECT_EQ(rows(theirs, columns, first + row, first + row + 1),
                rows(ours, columns, first + order[row], first + order[row] + 1))
          << first << " " << row;
  };
  const Exported qwen(whole, "qwen3_pairs");
  const std::string layer = "model.layers.1.self_attn.";
  const auto qkv = qwen.our("layers.1.attention.qkv.weight");
  for (size_t head = 0; head < 4; ++head)
    expect_rows(qwen.their(layer + "q_proj.weight"), qkv, 8, 6 * head, {0, 2, 4, 1, 3, 5});
  expect_rows(qwen.their(layer + "k_proj.weight"), rows(qkv, 8, 24, 36), 8, 6, {0, 2, 4, 1, 3, 5});
  EXPECT_EQ(qwen.their(layer + "v_proj.weight"), rows(qkv, 8, 36, 48));
  expect_rows(qwen.their(layer + "k_norm.weight"), qwen.our("layers.1.attention.k_norm.weight"), 1, 0,
              {0, 2, 4, 1, 3, 5});

  const Exported phi3(half, "phi3_pairs");  // 2 query heads, one key head, one value head, of 8 rows each
  const auto fused = phi3.their(layer + "qkv_proj.weight"), own = phi3.our("layers.1.attention.qkv.weight");
  for (size_t head = 0; head < 3; ++head) expect_rows(fused, own, 16, 8 * head, {0, 2, 1, 3, 4, 5, 6, 7});
  EXPECT_EQ(rows(fused, 16, 24, 32), rows(own, 16, 24, 32));

  const Exported deepseek(pairs, "deepseek_pairs");
  EXPECT_EQ(deepseek.their(layer + "q_b_proj.weight"), deepseek.our("layers.1.attention.q_up.weight"));
  EXPECT_EQ(deepseek.their(layer + "kv_a_proj_with_mqa.weight"), deepseek.our("layers.1.attention.kv_down.weight"));
  const Exported in_halves(halves, "deepseek_pairs_in_halves");
  expect_rows(in_halves.their(layer + "kv_a_proj_with_mqa.weight"), in_halves.our("layers.1.attention.kv_down.weight"),
              6, 5, {0, 2, 4, 1, 3, 5});
}

// Of each head four of eight rows turn, as neighbours; a model that rotates adjacent elements has the same rows.
TEST(HfMapping, RowsThatTurnAreTheFirstOfAHeadAndNeighboursInGlm4) {
  ModelConfig same = tiny_glm4();
  same.rotary_interleaved = true;
  const Exported halves(tiny_glm4(), "glm4"), pairs(same, "glm4_pairs");
  const std::string layer = "model.layers.1.self_attn.";
  const auto own = halves.our("layers.1.attention.qkv.weight"), own_bias = halves.our("layers.1.attention.qkv.bias");
  const std::vector<size_t> place = {0, 4, 1, 5, 2, 3, 6, 7};
  for (size_t row = 0; row < 16; ++row) {
    const size_t ours = row / 8 * 8 + place[row % 8];
    EXPECT_EQ(rows(halves.their(layer + "q_proj.weight"), 16, row, row + 1), rows(own, 16, ours, ours + 1)) << row;
    EXPECT_EQ(rows(halves.their(layer + "q_proj.bias"), 1, row, row + 1), rows(own_bias, 1, ours, ours + 1)) << row;
  }
  EXPECT_EQ(halves.their(layer + "v_proj.weight"), rows(own, 16, 24, 32));
  const auto paired = pairs.our("layers.1.attention.qkv.weight");
  EXPECT_EQ(pairs.their(layer + "q_proj.weight"), rows(paired, 16, 0, 16));
  EXPECT_EQ(pairs.their(layer + "k_proj.weight"), rows(paired, 16, 16, 24));
}

TEST(HfMapping, TheBiasOfErniesRouterIsARow) {
  const Exported e(tiny_ernie_moe(), "ernie_moe");
  const std::string name = "model.layers.1.mlp.moe_statics.e_score_correction_bias";
  EXPECT_THAT(e.shape(name), ElementsAre(1, 4));
}

TEST(HfMapping, BiasesOfDeepSeekTurnWithTheirRows) {
  ModelConfig config = tiny_deepseek();
  config.add_attention_bias = true;
  const Exported e(config, "deepseek_biases");
  const std::string layer = "model.layers.1.self_attn.";
  EXPECT_EQ(e.their(layer + "q_a_proj.bias"), e.our("layers.1.attention.q_down.bias"));
  EXPECT_EQ(e.their(layer + "o_proj.bias"), e.our("layers.1.attention.out.bias"));
  const auto ours = e.our("layers.1.attention.kv_down.bias"), theirs = e.their(layer + "kv_a_proj_with_mqa.bias");
  EXPECT_EQ(theirs, (std::vector<float>{ours[0], ours[1], ours[2], ours[3], ours[4], ours[5], ours[8], ours[6], ours[9],
                                        ours[7], ours[10]}));
  EXPECT_THAT(e.names(), Not(Contains(layer + "q_b_proj.bias")));
  EXPECT_THAT(e.names(), Not(Contains(layer + "kv_b_proj.bias")));
}

TEST(HfMapping, ExpertsRouterAndBiasOfDeepSeek) {
  const Exported e(tiny_deepseek(), "deepseek_experts");
  const std::string mlp = "model.layers.1.mlp.";
  EXPECT_EQ(e.their(mlp + "experts.3.up_proj.weight"), rows(e.our("layers.1.mlp.experts.3.gate_up.weight"), 6, 3, 6));
  EXPECT_EQ(e.their(mlp + "shared_experts.gate_proj.weight"),
            rows(e.our("layers.1.mlp.shared.gate_up.weight"), 6, 0, 6));
  EXPECT_EQ(e.their(mlp + "gate.weight"), e.our("layers.1.mlp.router.weight"));
  EXPECT_EQ(e.their(mlp + "gate.e_score_correction_bias"), floats(e.ours, "buffer/layers.1.mlp.router.bias"));
  EXPECT_EQ(e.their("model.layers.0.mlp.up_proj.weight"), rows(e.our("layers.0.mlp.gate_up.weight"), 6, 5, 10));
}

// As in the published weights: a layer after the last one, with copies of the tensors it shares with the model.
TEST(HfMapping, MtpIsTheNextLayer) {
  const Exported e(tiny_deepseek(), "deepseek_mtp");
  const std::string layer = "model.layers.2.";
  EXPECT_EQ(e.their(layer + "eh_proj.weight"), e.our("mtp.0.proj.weight"));
  EXPECT_EQ(e.their(layer + "enorm.weight"), e.our("mtp.0.enorm.weight"));
  EXPECT_EQ(e.their(layer + "hnorm.weight"), e.our("mtp.0.hnorm.weight"));
  EXPECT_EQ(e.their(layer + "shared_head.norm.weight"), e.our("mtp.0.norm.weight"));
  EXPECT_EQ(e.their(layer + "self_attn.o_proj.weight"), e.our("mtp.0.block.attention.out.weight"));
  EXPECT_EQ(e.their(layer + "mlp.experts.2.down_proj.weight"), e.our("mtp.0.block.mlp.experts.2.down.weight"));
  EXPECT_EQ(e.their(layer + "mlp.gate.e_score_correction_bias"), floats(e.ours, "buffer/mtp.0.block.mlp.router.bias"));
  EXPECT_EQ(e.their(layer + "embed_tokens.weight"), e.our("embedding.weight"));
  EXPECT_EQ(e.their(layer + "shared_head.head.weight"), e.our("head.weight"));
}

TEST(HfMapping, EveryElementOfEveryModelHasOnePlace) {
  for (const ModelConfig& config : tiny_models()) {
    const HfFamily& family = hf_family(config);
    std::set<std::pair<std::string, int64_t>> names;
    int64_t elements = 0;
    for (const HfTensor& tensor : hf_mapping(config, family)) {
      int64_t row = 0;
      for (const HfPart& part : tensor.parts) {
        EXPECT_TRUE(names.insert({part.name, part.slice}).second) << part.name;
        if (part.kind != HfPartKind::kTensor) continue;
        EXPECT_EQ(part.first_row, row) << part.name;
        row += part.rows;
        std::set<int64_t> seen;
        for (int64_t r = 0; r < part.rows; ++r) seen.insert(our_row(part, r));
        EXPECT_EQ(seen.size(), static_cast<size_t>(part.rows));
        EXPECT_EQ(*seen.rbegin(), part.rows - 1);
      }
      EXPECT_EQ(row, tensor.shape[0]) << tensor.ours;
      if (tensor.ours.starts_with("weight/"))
        elements += std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
    }
    EXPECT_EQ(elements, count_model(config, config.seq_length).total + count_model(config, config.seq_length).mtp)
        << family.architecture;
  }
}

}  // namespace
}  // namespace ranklab
