// Virtual time of a run that resumes from a checkpoint: loading is before the first step, not in it.
#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

// Ranks gather the parameters of the shards that they have loaded.
TEST(ResumeTime, TheFirstStepTakesItsOwnAlone) {
  const std::string folder = temporary_path("ranklab_resume_time");
  RunPlan plan = plan_of(kTinyRun + kDense + saving(folder) + loading("auto") +
                         Settings{{"parallel.world_size", "4"}, {"parallel.tp", "2"}, {"parallel.zero_stage", "1"}});
  plan.config.virtual_time = true;
  train(plan, 3);
  const auto second = train(plan);
  ASSERT_EQ(second->steps.size(), 3);
  const StepMetrics &first = second->steps[0], &next = second->steps[1];
  EXPECT_GT(first.virtual_step_ms, 0);
  EXPECT_EQ(first.virtual_step_ms, next.virtual_step_ms);
  EXPECT_EQ(first.exposed_comm_fraction, next.exposed_comm_fraction);
  EXPECT_EQ(first.peer_wait_fraction, next.peer_wait_fraction);
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
