// What overlapped communication saves in plans of large models; docs/parallelism.md and docs/experts.md give the same
// figures.
#include <gtest/gtest.h>

#include "core/spec/presets.h"
#include "tests/plan/planned_step.h"

namespace ranklab {
namespace {

TEST(OverlapPlan, TensorParallelPieces) {
  TrainConfig c;
  c.model = model_preset("llama_70b");
  c.parallel = {.world = 64, .tp = 8, .pp = 4};
  c.micro_batch_size = 1;
  c.global_batch_size = 32;
  c.bf16 = true;
  c.efficiency = Efficiency::kMeasured;
  EXPECT_EQ(planned_step_ms(c), 4530);
  c.tp_comm_overlap = true;
  EXPECT_EQ(planned_step_ms(c), 4185);
}

TEST(OverlapPlan, PairsOfMicrobatchesInAPipeline) {
  TrainConfig c;
  c.model = model_preset("deepseek_v3");
  c.parallel = {.world = 2048, .pp = 16, .ep = 64};
  c.zero_stage = 1;
  c.micro_batch_size = 1;
  c.global_batch_size = 3840;
  c.bf16 = true;
  c.recompute_granularity = "full";
  c.efficiency = Efficiency::kMeasured;
  EXPECT_EQ(planned_step_ms(c), 20006);
  c.overlap_moe = true;
  EXPECT_EQ(planned_step_ms(c), 17259);
}

}  // namespace
}  // namespace ranklab
