// What overlapped communication saves in plans of large models; docs/parallelism.md and docs/experts.md give the same
// figures.
#include <gtest/gtest.h>

#include "core/spec/presets.h"
#include "tests/plan/planned_step.h"

namespace ranklab {
namespace {

// In bf16, microbatches of one sequence.
TrainConfig large_run(const char* preset, const ParallelDims& dims, int64_t sequences) {
  TrainConfig c;
  c.model = model_preset(preset);
  c.parallel = dims;
  c.micro_batch_size = 1;
  c.global_batch_size = sequences;
  c.bf16 = true;
  c.efficiency = Efficiency::kMeasured;
  return c;
}

TEST(OverlapPlan, TensorParallelPieces) {
  TrainConfig c = large_run("llama_70b", {.world = 64, .tp = 8, .pp = 4}, 32);
  EXPECT_EQ(planned_step_ms(c), 4530);
  c.tp_comm_overlap = true;
  EXPECT_EQ(planned_step_ms(c), 4185);
}

TEST(OverlapPlan, PairsOfMicrobatchesInAPipeline) {
  TrainConfig c = large_run("deepseek_v3", {.world = 2048, .pp = 16, .ep = 64}, 3840);
  c.zero_stage = 1;
  c.recompute_granularity = "full";
  EXPECT_EQ(planned_step_ms(c), 19815);
  c.overlap_moe = true;
  EXPECT_EQ(planned_step_ms(c), 17123);
}

}  // namespace
}  // namespace ranklab
