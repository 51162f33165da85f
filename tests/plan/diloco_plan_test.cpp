// A plan of a DiLoCo run: the mean of the steps from one outer update to the next, and the memory that an outer update
// takes, against runs.
#include <gtest/gtest.h>

#include "backends/cpu_sim/thread_world.h"
#include "backends/meta/meta_world.h"
#include "core/config/state_types.h"
#include "core/plan/record_step.h"
#include "core/runtime/engine.h"

namespace ranklab {
namespace {

class Steps final : public Hook {
 public:
  void on_step_end(const StepMetrics& metrics) override { ms.push_back(metrics.virtual_step_ms); }
  std::vector<double> ms;
};

TrainConfig config_of(const ParallelDims& dims, int64_t zero_stage, const DilocoConfig& diloco) {
  TrainConfig c;
  c.parallel = dims;
  c.zero_stage = zero_stage;
  c.diloco = diloco;
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.trace = false;
  c.global_batch_size = 16;
  c.train_iters = diloco.sync_steps + 1;
  return c;
}

// RETURNS: the mean step of a run, in ns, without its first step.
double mean_step_ns(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  const auto steps = std::make_shared<Steps>();
  RuntimeEngine engine(default_components(make_thread_world({.size = plan.mesh.world_size()}), plan), plan);
  engine.add_hook(steps);
  engine.fit();
  double sum = 0;
  for (size_t i = 1; i < steps->ms.size(); ++i) sum += steps->ms[i];
  return 1e6 * sum / static_cast<double>(steps->ms.size() - 1);
}

TEST(DilocoPlan, TheMeanStepIsThatOfRuns) {
  const ParallelDims two = {.world = 2, .tp = 1, .pp = 1};
  for (const TrainConfig& config :
       {config_of(two, 0, {.sync_steps = 1}), config_of(two, 0, {.sync_steps = 4}),
        config_of({.world = 4, .tp = 2, .pp = 1}, 0, {.sync_steps = 3}),
        config_of({.world = 4, .tp = 1, .pp = 2}, 0, {.sync_steps = 3}),
        config_of({.world = 4, .tp = 1, .pp = 1}, 1, {.sync_steps = 3, .replicas = 2}),
        config_of({.world = 4, .tp = 1, .pp = 1}, 3, {.sync_steps = 3, .replicas = 2}),
        config_of(two, 0, {.sync_steps = 4, .sync_delay = 1}), config_of(two, 0, {.sync_steps = 4, .fragments = 2}),
        config_of(two, 0, {.sync_steps = 8, .fragments = 4, .sync_delay = 1, .update_alpha = 0.5}),
        // A fragment's update delays the stages that have its layers.
        config_of({.world = 4, .tp = 1, .pp = 2}, 0, {.sync_steps = 4, .fragments = 2, .sync_delay = 1}),
        config_of({.world = 4, .tp = 1, .pp = 2}, 0, {.sync_steps = 2, .fragments = 2}),
        config_of({.world = 8, .tp = 1, .pp = 4}, 0, {.sync_steps = 4, .fragments = 4})}) {
    const StepRecord plan = record_step(resolve(config), make_meta_world);
    const double run_ns = mean_step_ns(config);
    EXPECT_GT(plan.added.outer_update_ns, 0);
    EXPECT_NEAR(static_cast<double>(plan.step_ns) / run_ns, 1, kStepTimeTolerance)
        << "every " << config.diloco.sync_steps << " steps, " << config.diloco.fragments << " fragments, delay "
        << config.diloco.sync_delay << ", ZeRO " << config.zero_stage << ", tp " << config.parallel.tp << ", pp "
        << config.parallel.pp;
  }
}

// plan memory's bytes per parameter say what the outer optimizer really holds.
TEST(DilocoPlan, TheStatesOfTheOuterOptimizerAreCounted) {
  for (const bool bf16 : {false, true}) {
    for (const int64_t delay : {0, 1}) {
      TrainConfig config = config_of({.world = 2, .tp = 1, .pp = 1}, 0, {.sync_steps = 4, .sync_delay = delay});
      config.bf16 = bf16;
      const RunPlan plan = resolve(config);
      const CategoryBytes with = record_step(plan, make_meta_world).ranks.at(0).after;
      config.diloco = {};
      const CategoryBytes without = record_step(resolve(config), make_meta_world).ranks.at(0).after;
      constexpr auto kStates = static_cast<size_t>(MemoryCategory::kOptimizer);
      constexpr auto kWeights = static_cast<size_t>(MemoryCategory::kParameters);
      const StateTypes types = state_types(plan);
      EXPECT_EQ(with[kStates] - without[kStates], types.outer_bytes() * without[kWeights] / types.param_bytes())
          << "bf16 " << bf16 << ", delay " << delay;
    }
  }
}

// Without an outer update, so that the difference is that of the rule: an exchange of all parameters now and then
// instead of all gradients each time.
TEST(DilocoPlan, StepsBetweenOuterUpdatesExchangeNoGradients) {
  TrainConfig config = config_of({.world = 8, .tp = 1, .pp = 1}, 0, {.sync_steps = 100});
  const StepRecord alone = record_step(resolve(config), make_meta_world);
  config.diloco = {};
  const StepRecord together = record_step(resolve(config), make_meta_world);
  EXPECT_LT(alone.step_ns, together.step_ns);
  EXPECT_EQ(alone.ranks[0].traffic.busy_ns.count(Axis::kDpShard), 0u);
  EXPECT_GT(together.ranks[0].traffic.busy_ns.at(Axis::kDp), 0);
}

}  // namespace
}  // namespace ranklab
