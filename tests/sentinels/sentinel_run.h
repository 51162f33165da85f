// A small run with sentinels, and their reports. Its wall clock is the test's own: each rank's thread has a time that
// only before_each_step() and data advance, so that no processor's speed fires a sentinel.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/before_step.h"
#include "core/runtime/engine.h"
#include "core/runtime/provide.h"
#include "core/sim/memory_scope.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/small_config.h"

namespace ranklab {

inline thread_local int64_t rank_wall_ns = 1;

struct SentinelRun {
  std::vector<std::shared_ptr<const SentinelReport>> steps;
  std::vector<StepMetrics> metrics;
  TrainResult result;

  std::set<std::string> fired() const {
    std::set<std::string> names;
    for (const auto& report : steps)
      for (const SentinelAlarm& alarm : report->alarms) names.insert(alarm.name);
    return names;
  }
};

struct SentinelRunOptions {
  std::function<void(RunPlan&)> plan = {};             // of a run that was resolved
  std::function<void(RuntimeComponents&)> parts = {};  // instead of the default ones
  std::function<void(StepContext&)> before_step = {};  // on every rank
  std::string output = {};                             // of dumps
};

// tp 2 x pp 2 x dp 2, everything looked at in each step.
inline TrainConfig watched_config() {
  TrainConfig c = small_config();
  c.parallel = {.world = 8, .tp = 2, .pp = 2};
  c.train_iters = 6;
  c.lr_decay = LrDecay::kConstant;
  c.sentinels = {.mode = SentinelMode::kStandard, .rules = {}, .interval = 1, .probe_interval = 1, .drift_interval = 1};
  return c;
}

inline SentinelRun run_sentinels(const TrainConfig& config, const SentinelRunOptions& options = {}) {
  class Keep : public Hook {
   public:
    explicit Keep(SentinelRun& run) : run_(run) {}
    void on_step_end(const StepMetrics& m) override {
      run_.steps.push_back(m.sentinels ? m.sentinels : std::make_shared<const SentinelReport>());
      run_.metrics.push_back(m);
    }

   private:
    SentinelRun& run_;
  };
  install_booking_allocator();
  RunPlan plan = resolve(config);
  if (options.plan) options.plan(plan);
  RuntimeComponents parts = default_components(make_test_world(plan.mesh.world_size()), plan);
  if (options.parts) options.parts(parts);
  parts.schedule_selector = before_each_step(parts.schedule_selector, [&options](StepContext& context) {
    rank_wall_ns += 1'000'000'000;
    if (options.before_step) options.before_step(context);
  });
  RuntimeEngine engine(std::move(parts), plan);
  engine.set_wall_clock([] { return rank_wall_ns; });
  engine.set_output_folder(options.output);
  SentinelRun run;
  engine.add_hook(std::make_shared<Keep>(run));
  run.result = engine.fit();
  return run;
}

}  // namespace ranklab
