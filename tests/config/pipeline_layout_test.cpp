#include "core/config/pipeline_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/pipeline/balanced_split.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/stage_layout.h"
#include "core/spec/module_table.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using testing::ElementsAre;

std::vector<double> equal_layers(size_t count) { return std::vector<double>(count, 1.0); }

TEST(BalancedSplit, TheHeadIsWorkOfTheLastStage) {
  EXPECT_THAT(balanced_split(equal_layers(32), {.behind = 2.4}, 4), ElementsAre(8, 9, 9, 6));
  EXPECT_THAT(balanced_split(equal_layers(12), {.behind = 5}, 4), ElementsAre(4, 4, 4, 0));
  EXPECT_THAT(balanced_split(equal_layers(8), {.behind = 0}, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(balanced_split(equal_layers(4), {.behind = 100}, 4), ElementsAre(1, 1, 2, 0));
  EXPECT_THAT(balanced_split(equal_layers(16), {.behind = 4.3}, 8), ElementsAre(2, 2, 2, 3, 2, 2, 3, 0));
  EXPECT_THAT(balanced_split(equal_layers(16), {.behind = 4.3}, 16).back(), 0) << "one layer each leaves all to wait";
  EXPECT_THAT(balanced_split(equal_layers(8), {.behind = 1}, 8), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1)) << "as good";
}

TEST(BalancedSplit, LayersOfUnequalWork) {
  // Three dense layers of a third of the work, as DeepSeek-V3's.
  const std::vector<double> layers = {1, 1, 1, 3, 3, 3, 3, 3};
  EXPECT_THAT(balanced_split(layers, {.behind = 0}, 3), ElementsAre(4, 2, 2));
}

// The smallest fullest stage of all splits into so many stages with layers, followed by `last`: every choice of places
// between layers.
double least_of_all(const std::vector<double>& layers, const EndWork& ends, int stages,
                    const std::vector<int64_t>& last) {
  double least = 1e9;
  for (unsigned cuts = 0; cuts < 1U << (layers.size() - 1); ++cuts) {
    if (__builtin_popcount(cuts) != stages - 1) continue;
    std::vector<int64_t> split = {1};
    for (size_t i = 0; i + 1 < layers.size(); ++i)
      if (cuts >> i & 1U)
        split.push_back(1);
      else
        ++split.back();
    split.insert(split.end(), last.begin(), last.end());
    least = std::min(least, fullest_stage(layers, ends, split));
  }
  return least;
}

// The fullest stage is as small as in any other split, found by trying all.
TEST(BalancedSplit, NoOtherSplitHasASmallerFullestStage) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    unsigned state = seed * 2654435761U + 1;
    const auto next = [&](unsigned below) {
      return (state = state * 1664525U + 1013904223U) >> 16U % 32U ? (state >> 8U) % below : 0U;
    };
    const size_t count = 3 + next(6);
    const auto stages = static_cast<int64_t>(2 + next(static_cast<unsigned>(count) - 1));
    std::vector<double> layers;
    for (size_t i = 0; i < count; ++i) layers.push_back(1 + next(5));
    const double behind = next(7), ahead = next(7);
    const EndWork ends{.ahead = ahead, .behind = behind};
    const std::vector<int64_t> split = balanced_split(layers, ends, stages);
    ASSERT_EQ(std::accumulate(split.begin(), split.end(), int64_t{0}), static_cast<int64_t>(count));
    double least = least_of_all(layers, ends, static_cast<int>(stages), {});
    if (behind > 0) least = std::min(least, least_of_all(layers, ends, static_cast<int>(stages) - 1, {0}));
    EXPECT_DOUBLE_EQ(fullest_stage(layers, ends, split), least) << "seed " << seed;
  }
}

TEST(LayerFlops, AddUpToTheModels) {
  for (const char* preset : {"gpt_tiny", "llama_8b", "deepseek_v3"}) {
    const ModelConfig model = model_preset(preset);
    const LayerFlops flops = flops_of_layers(model, 4096);
    const ModelCounts counts = count_model(model, 4096);
    const double sum = std::accumulate(flops.layers.begin(), flops.layers.end(), flops.behind);
    EXPECT_NEAR(sum / (counts.forward_flops_per_token + counts.mtp_forward_flops_per_token), 1, 1e-12) << preset;
  }
}

TrainConfig config_of(const char* preset, int pp) {
  TrainConfig config;
  config.model = model_preset(preset);
  config.parallel.pp = pp;
  return config;
}

Schedule schedule_of(int pp) { return make_schedule("1f1b", {.num_ranks = pp, .num_microbatches = 2 * pp}); }

TEST(StageLayers, ALargeHeadMovesLayersToOtherStages) {
  // Llama 3's vocabulary of 128,256: the head is more than two of its layers.
  const std::vector<int64_t> split = resolve_stage_layers(config_of("llama_8b", 4), schedule_of(4));
  EXPECT_EQ(std::accumulate(split.begin(), split.end(), int64_t{0}), 32);
  EXPECT_LT(split.back(), 8);
  EXPECT_LE(split.front(), 9);
}

TEST(StageLayers, ASmallHeadLeavesAnEvenSplit) {
  EXPECT_THAT(resolve_stage_layers(config_of("gpt_tiny", 2), schedule_of(2)), ElementsAre(2, 2));
}

TEST(StageLayers, EvenCanBeAskedFor) {
  TrainConfig config = config_of("llama_8b", 4);
  config.pipeline_layout = "even";
  EXPECT_THAT(resolve_stage_layers(config, schedule_of(4)), ElementsAre(8, 8, 8, 8));
}

// Megatron-LM's --account-for-embedding-in-pipeline-split, and --account-for-loss-...: each then counts as a layer.
TEST(StageLayers, StagesMayHaveTheEmbeddingOrTheHeadAlone) {
  TrainConfig config = config_of("gpt_tiny", 4);
  config.pipeline_layout = "0,2,2,0";
  EXPECT_THAT(resolve_stage_layers(config, schedule_of(4)), ElementsAre(0, 2, 2, 0));
}

TEST(StageLayout, PatternsOfMegatronCore) {
  const StageLayout deepseek = parse_stage_layout("Et*3|(tt|)*29m|L");
  ASSERT_EQ(deepseek.layers.size(), 32U);
  EXPECT_EQ(deepseek.layers.front(), 3);
  EXPECT_EQ(std::accumulate(deepseek.layers.begin(), deepseek.layers.end(), int64_t{0}), 61);
  EXPECT_EQ(deepseek.layers[30], 0);
  EXPECT_EQ(deepseek.mtp_layers, 1);
  EXPECT_EQ(deepseek.mtp_stage, 30);
  EXPECT_THAT(parse_stage_layout("E,t*2|(t*2|t|)*2,L").layers, ElementsAre(2, 2, 1, 2, 1, 0));
  EXPECT_THAT(parse_stage_layout("E|*2t|L").layers, ElementsAre(0, 0, 1, 0)) << "what is repeated may be a cut";
  EXPECT_THAT(parse_stage_layout("Et*12L").layers, ElementsAre(12));
  EXPECT_EQ(parse_stage_layout("Et|tmmL").mtp_stage, -1) << "with the head, as without a pattern";
  EXPECT_EQ(parse_stage_layout("1,2").mtp_layers, std::nullopt);
}

TEST(StageLayout, RefusesWhatIsNoPattern) {
  for (const char* text : {"tt|L", "Ett|t", "Et|Et|L", "Et|xL", "E(tt|L", "E((t|)*2)*2L", "Et*|L", "Et*999999|L",
                           "Et*99999*99999L", "Etm|t|L", "Etm|m|L", "Et|t L", "(tt|)*3", "1,,2", "1,2,", "-1,2", "L"})
    EXPECT_THROW(parse_stage_layout(text), Error) << text;
}

TEST(StageLayers, APatternFitsTheModelAndThePipeline) {
  TrainConfig config = config_of("gpt_tiny", 4);
  const auto layers = [&](const char* text) {
    config.pipeline_layout = text;
    return resolve_stage_layers(config, schedule_of(4));
  };
  EXPECT_THAT(layers("E|tt|tt|L"), ElementsAre(0, 2, 2, 0));
  EXPECT_THROW(layers("E|tt|L"), Error);
  EXPECT_THROW(layers("E|tt|t|L"), Error);
  EXPECT_THROW(layers("E|tttt|m|L"), Error) << "the model predicts no further token";
  config.model.mtp_num_layers = 1;
  EXPECT_THAT(layers("E|tttt|m|L"), ElementsAre(0, 4, 0, 0));
  EXPECT_EQ(resolve_mtp_stage(config), 2);
  EXPECT_THROW(layers("E|tt|tt|L"), Error) << "which is somewhere";
}

}  // namespace
}  // namespace ranklab
