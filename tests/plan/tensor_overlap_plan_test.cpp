// What --tp-comm-overlap saves in a plan of a large model; docs/parallelism.md gives the same figures.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/meta/meta_world.h"
#include "core/plan/record_step.h"
#include "core/spec/presets.h"

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
  const auto step_ms = [&] {
    return std::llround(static_cast<double>(record_step(resolve(c), make_meta_world).step_ns) * 1e-6);
  };
  EXPECT_EQ(step_ms(), 4530);
  c.tp_comm_overlap = true;
  EXPECT_EQ(step_ms(), 4185);
}

}  // namespace
}  // namespace ranklab
