#include "core/config/pipeline_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/pipeline/balanced_split.h"
#include "core/pipeline/schedules.h"
#include "core/spec/module_table.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

using testing::ElementsAre;

std::vector<double> equal_layers(size_t count) { return std::vector<double>(count, 1.0); }

TEST(BalancedSplit, TheHeadIsWorkOfTheLastStage) {
  EXPECT_THAT(balanced_split(equal_layers(32), {.behind = 2.4}, 4), ElementsAre(8, 9, 9, 6));
  EXPECT_THAT(balanced_split(equal_layers(12), {.behind = 5}, 4), ElementsAre(4, 4, 3, 1));
  EXPECT_THAT(balanced_split(equal_layers(8), {.behind = 0}, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(balanced_split(equal_layers(4), {.behind = 100}, 4), ElementsAre(1, 1, 1, 1));
}

TEST(BalancedSplit, LayersOfUnequalWork) {
  // Three dense layers of a third of the work, as DeepSeek-V3's.
  const std::vector<double> layers = {1, 1, 1, 3, 3, 3, 3, 3};
  EXPECT_THAT(balanced_split(layers, {.behind = 0}, 3), ElementsAre(4, 2, 2));
}

// The fullest stage is as small as that of any split, found by trying all.
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
    double least = 1e9;
    // Every choice of stages - 1 of the places between layers.
    for (unsigned cuts = 0; cuts < 1U << (count - 1); ++cuts) {
      if (__builtin_popcount(cuts) != stages - 1) continue;
      std::vector<int64_t> other = {1};
      for (size_t i = 0; i + 1 < count; ++i)
        if (cuts >> i & 1U)
          other.push_back(1);
        else
          ++other.back();
      least = std::min(least, fullest_stage(layers, ends, other));
    }
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
TEST(StageLayers, TheEndsMayHaveTheEmbeddingOrTheHeadAlone) {
  TrainConfig config = config_of("gpt_tiny", 4);
  config.pipeline_layout = "0,2,2,0";
  EXPECT_THAT(resolve_stage_layers(config, schedule_of(4)), ElementsAre(0, 2, 2, 0));
  for (const char* idle : {"2,0,2,0", "0,4,0,0"}) {
    config.pipeline_layout = idle;
    EXPECT_THROW(resolve_stage_layers(config, schedule_of(4)), Error) << idle;
  }
}

}  // namespace
}  // namespace ranklab
