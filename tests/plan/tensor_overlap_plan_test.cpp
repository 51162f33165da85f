// What --tp-comm-overlap saves in a plan of a large model; docs/parallelism.md gives the same figures.
#include <gtest/gtest.h>

#include "core/spec/presets.h"
#include "tests/plan/planned_step.h"

namespace ranklab {
namespace {

TEST(TensorOverlapPlan, HidesTheCollectivesOfALargeModel) {
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

}  // namespace
}  // namespace ranklab
