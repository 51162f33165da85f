// ranklab model info --roofline, beside closed forms of its numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

nlohmann::json roofline_of(const std::string& options) {
  const Outcome run = ranklab("model info " + options + " --roofline --json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output)["data"];
}

nlohmann::json roofline_point_of(const nlohmann::json& data, const std::string& phase, int64_t sequences) {
  for (const nlohmann::json& one : data["roofline"]["points"])
    if (one["phase"] == phase && one["sequences"] == sequences) return one;
  ADD_FAILURE() << phase << " of " << sequences;
  return {};
}

// Parameters of products, and of embeddings, of which a token uses one row.
int64_t parameters_of(const nlohmann::json& data, const std::string& part) {
  int64_t sum = 0;
  for (const nlohmann::json& row : data["modules"])
    if (row["part"] == part) sum += row["parameters"].get<int64_t>();
  return sum;
}

TEST(Roofline, OfADenseModelIsItsClosedForm) {
  const nlohmann::json data =
      roofline_of("llama_8b --bf16 --hardware h200 --seq-length 4096 --world-size 8 --tp 8 --gbs 1");
  const double hidden = 4096, layers = 32, heads = 32, width = 128, groups = 8, length = 4096;
  double products = 0;
  for (const nlohmann::json& row : data["modules"]) products += row["forward_flops_per_token"].get<double>();
  const double pairs = length * (length + 1) / 2, embedding = static_cast<double>(parameters_of(data, "embedding"));

  const nlohmann::json one = roofline_point_of(data, "decode", 1);
  EXPECT_DOUBLE_EQ(one["tensor_flops"], products + layers * 2 * length * heads * 2 * width);
  EXPECT_DOUBLE_EQ(one["weight_bytes"], 2 * (data["total_parameters"].get<double>() - embedding + hidden));
  EXPECT_DOUBLE_EQ(one["kv_bytes"], 2 * (length + 1) * layers * 2 * groups * width);
  EXPECT_EQ(one["bound"], "memory");
  // One row of 64 of a matrix unit's tile in products, four in attention: as many heads share keys.
  const double scalar = one["theoretical_flops"].get<double>() - one["tensor_flops"].get<double>();
  EXPECT_NEAR(one["realizable_flops"].get<double>(),
              64 * products + 16 * layers * 2 * length * heads * 2 * width + scalar * 989.4 / 67,
              1e-9 * one["realizable_flops"].get<double>());

  const nlohmann::json prompt = roofline_point_of(data, "prefill", 1);
  EXPECT_DOUBLE_EQ(prompt["tensor_flops"], length * products + layers * 2 * pairs * heads * 2 * width);
  EXPECT_EQ(prompt["bound"], "compute");
  const nlohmann::json training = roofline_point_of(data, "training", prompt["sequences"]);
  EXPECT_DOUBLE_EQ(training["tensor_flops"], 3 * length * products + 3.5 * layers * 2 * pairs * heads * 2 * width);
  EXPECT_DOUBLE_EQ(data["roofline"]["knee"], 989.4e12 / 4.8e12);
}

TEST(Roofline, VectorUnitsHaveNoTileToFill) {
  const nlohmann::json data =
      roofline_of("llama_8b --params-dtype fp32 --hardware h200 --seq-length 1024 --world-size 8 --tp 8 --gbs 1");
  const nlohmann::json one = roofline_point_of(data, "decode", 1);
  EXPECT_DOUBLE_EQ(one["realizable_flops"], one["theoretical_flops"].get<double>());
  EXPECT_EQ(one["bound"], "memory");
  EXPECT_EQ(roofline_point_of(data, "prefill", 1)["bound"], "compute");
}

TEST(Roofline, DecodingOfMoreSequencesBecomesDenser) {
  const nlohmann::json data =
      roofline_of("llama_8b --bf16 --hardware h200 --seq-length 1024 --world-size 8 --tp 8 --gbs 1");
  double intensity = 0, tokens_per_s = 0;
  for (int64_t sequences = 1; sequences <= 1024; sequences *= 2) {
    const nlohmann::json one = roofline_point_of(data, "decode", sequences);
    EXPECT_GT(one["intensity"], intensity) << sequences;
    EXPECT_GT(one["tokens_per_s"], tokens_per_s) << sequences;
    EXPECT_DOUBLE_EQ(
        one["weight_bytes"].get<double>() / roofline_point_of(data, "decode", 1)["weight_bytes"].get<double>(),
        1 + static_cast<double>((sequences - 1) * 4096) * 2 /
                roofline_point_of(data, "decode", 1)["weight_bytes"].get<double>());
    intensity = one["intensity"];
    tokens_per_s = one["tokens_per_s"];
  }
}

TEST(Roofline, ExpertsAreSpreadUntilARankFits) {
  const nlohmann::json data =
      roofline_of("deepseek_v3 --bf16 --hardware h200 --seq-length 4096 --world-size 256 --ep 256 --gbs 256");
  for (const char* use : {"decoding", "training"}) {
    const nlohmann::json spread = data["roofline"][use];
    const auto held = [&](double ranks) {
      return spread["dense_bytes"].get<double>() + spread["cache_bytes"].get<double>() +
             spread["expert_bytes"].get<double>() / ranks;
    };
    constexpr double kMemory = 141e9;
    if (spread["smallest_ep"].is_null()) {
      EXPECT_GT(held(256), kMemory) << use;
      continue;
    }
    const auto ep = spread["smallest_ep"].get<double>();
    EXPECT_LE(held(ep), kMemory) << use;
    EXPECT_GT(held(ep / 2), kMemory) << use;
  }
  EXPECT_EQ(data["roofline"]["decoding"]["smallest_ep"], 16);
  // Decoding multiplies the compressed vectors: 512 + 64 for a score, 512 for a value, of 128 heads in 61 layers.
  double products = 0;
  for (const nlohmann::json& row : data["modules"])
    if (!row["mtp"] && row["part"] != "router") products += row["forward_flops_per_token"].get<double>();
  EXPECT_NEAR(roofline_point_of(data, "decode", 1)["tensor_flops"].get<double>(),
              products + 61.0 * 128 * 2 * 4096 * (512 + 64 + 512), 1e-6 * products);
  // A token reaches 8 of 256 experts, many tokens nearly all.
  const auto weights = [&](int64_t sequences) {
    return roofline_point_of(data, "decode", sequences)["weight_bytes"].get<double>();
  };
  EXPECT_LT(weights(1), 0.08 * weights(1024));
  EXPECT_NEAR(weights(1), 2 * data["active_parameters_without_embedding"].get<double>(), 0.01 * weights(1));
}

TEST(Roofline, IsATableInWords) {
  const Outcome run = ranklab("model info gpt2_124m --roofline");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, testing::AllOf(testing::HasSubstr("FLOP/byte"), testing::HasSubstr("decode        1024"),
                                         testing::HasSubstr("fits one GPU")));
  EXPECT_THAT(ranklab("model info gpt2_124m").output, testing::Not(testing::HasSubstr("roofline")));
}

TEST(Roofline, IsDrawnWithTheModelAndItsWeights) {
  const std::string picture = testing::TempDir() + "/model.svg", png = testing::TempDir() + "/model.png";
  const std::string tiny = "model info gpt_tiny --roofline --histograms --force --out ";
  EXPECT_EQ(ranklab(tiny + picture).output, "");
  const std::string svg = text_of_file(picture);
  EXPECT_THAT(svg,
              testing::AllOf(testing::StartsWith("<!-- Written by ranklab model info. -->"),
                             testing::HasSubstr("layers.*.attention.qkv.weight"), testing::HasSubstr("roofline of"),
                             testing::HasSubstr("memory of a rank"), testing::HasSubstr("kurtosis 3"),
                             testing::HasSubstr("decoding of as many sequences"), testing::HasSubstr(">1024</text>")));
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr("nan")));
  EXPECT_EQ(ranklab(tiny + png + " --theme dark").exit_code, 0);
  EXPECT_THAT(text_of_file(png), testing::HasSubstr("PNG"));
  EXPECT_EQ(ranklab("model info gpt_tiny --out " + picture).exit_code, 0) << "it may replace what it wrote";
  EXPECT_THAT(text_of_file(picture), testing::Not(testing::HasSubstr("roofline of")));
}

}  // namespace
}  // namespace ranklab
