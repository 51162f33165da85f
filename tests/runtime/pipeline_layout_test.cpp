// From --pp and related settings to microbatches, layers and holders of parameters.
#include "core/config/pipeline_layout.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace ranklab {
namespace {

TrainConfig pipeline(int pp, const std::string& schedule = "1f1b") {
  TrainConfig c;
  c.parallel = {.world = pp, .pp = pp};
  c.pipeline_schedule = schedule;
  return c;
}

TEST(PipelineLayout, MicrobatchesComeFromWhatIsAsked) {
  TrainConfig c = pipeline(1);
  EXPECT_EQ(resolve_microbatches(c, 12), 1);
  c.micro_batch_size = 3;
  EXPECT_EQ(resolve_microbatches(c, 12), 4);
  c.num_microbatches = 4;
  EXPECT_EQ(resolve_microbatches(c, 12), 4);
  c.num_microbatches = 6;
  EXPECT_THROW(resolve_microbatches(c, 12), Error);
  c.micro_batch_size = 0;
  EXPECT_EQ(resolve_microbatches(c, 12), 6);
}

TEST(PipelineLayout, APipelineHasTwoMicrobatchesForEachRankIfItCan) {
  EXPECT_EQ(resolve_microbatches(pipeline(4), 32), 8);
  EXPECT_EQ(resolve_microbatches(pipeline(3), 24), 6);
  EXPECT_EQ(resolve_microbatches(pipeline(4), 10), 10);  // no multiple of 4 divides it
  EXPECT_EQ(resolve_microbatches(pipeline(4), 3), 3);
}

// Of 32 sequences that grow from 8 by 4 on two data-parallel ranks, microbatches of 2 fit every size.
TEST(PipelineLayout, MicrobatchesOfABatchThatGrowsFitItsEverySize) {
  TrainConfig c = pipeline(1);
  c.global_batch_size = 32;
  c.rampup_batch_size = "8 4 100";
  EXPECT_EQ(resolve_microbatches(c, 16), 8);
  c.parallel.pp = 2;
  EXPECT_EQ(resolve_microbatches(c, 16), 16) << "the smallest has 4, two for each pipeline rank";
  c.rampup_batch_size = "16 8 100";
  EXPECT_EQ(resolve_microbatches(c, 16), 8);
  c.parallel.world = 4;
  EXPECT_EQ(resolve(c).micro_batch_size, 2);
}

TEST(PipelineLayout, LayersAreEvenAndTheFirstStagesTakeTheRest) {
  TrainConfig c = pipeline(4);
  c.model.num_layers = 10;
  EXPECT_EQ(resolve_stage_layers(c, resolve_schedule(c, 8)), (std::vector<int64_t>{3, 3, 2, 2}));
  c.pipeline_layout = "1,4,4,1";
  EXPECT_EQ(resolve_stage_layers(c, resolve_schedule(c, 8)), (std::vector<int64_t>{1, 4, 4, 1}));
}

TEST(PipelineLayout, SeveralStagesMakeIt1F1BInterleaved) {
  TrainConfig c = pipeline(2);
  c.virtual_stages = 3;
  EXPECT_EQ(resolve_schedule(c, 4).name, "interleaved-1f1b");
}

constexpr auto kFirst = ModelUnit::Place::kFirst;

TEST(PipelineLayout, HoldersAreTheRanksWithACopy) {
  TrainConfig c = pipeline(4);
  c.global_batch_size = 8;
  RunPlan plan = resolve(c);
  const ModelUnit embedding{.name = "embedding", .place = kFirst}, last;
  const ModelUnit tied{.name = "embedding", .place = kFirst, .used_by_last = true};
  const ModelUnit layer{.name = "layers.2", .place = ModelUnit::Place::kLayer, .layer = 2};
  EXPECT_EQ(pipeline_holders(plan, embedding), std::vector<int>{0});
  EXPECT_EQ(pipeline_holders(plan, tied), (std::vector<int>{0, 3}));
  EXPECT_EQ(pipeline_holders(plan, layer), std::vector<int>{2});
  EXPECT_EQ(pipeline_holders(plan, last), std::vector<int>{3});
  const ModelUnit mtp{.name = "mtp.0", .place = ModelUnit::Place::kMtp};
  const ModelUnit ahead{.name = "embedding", .place = kFirst, .used_by_mtp = true};
  plan.mtp_stage = 2;
  EXPECT_EQ(pipeline_holders(plan, mtp), std::vector<int>{2});
  EXPECT_EQ(pipeline_holders(plan, ahead), (std::vector<int>{0, 2}));
  EXPECT_EQ(pipeline_holders(plan, last), std::vector<int>{3});
  c.pipeline_schedule = "dualpipe";
  EXPECT_EQ(pipeline_holders(resolve(c), layer), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace ranklab
