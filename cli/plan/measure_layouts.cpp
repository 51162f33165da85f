#include "cli/plan/measure_layouts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/world/make_world.h"
#include "core/config/requirements.h"
#include "core/runtime/components.h"
#include "core/runtime/engine.h"
#include "core/runtime/memory/check.h"

namespace ranklab {
namespace {

constexpr int64_t kSteps = 6;  // the first one creates what later steps reuse

class StepTimes : public Hook {
 public:
  void on_step_end(const StepMetrics& step) override {
    if (step.step == 0) return;
    wall_ms.push_back(step.step_wall_ms);
    virtual_ms = step.virtual_step_ms;
  }
  std::vector<double> wall_ms;
  double virtual_ms = 0;
};

RunPlan short_run(TrainConfig config) {
  config.mock_data = true;
  config.data_path.clear();
  config.valid_data_path.clear();
  config.train_iters = kSteps;
  config.lr_warmup_iters = 0;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  config.trace = false;
  config.save_dir.clear();
  config.load.clear();
  return resolve(config);
}

MeasuredLayout measure(const LayoutPlanner& planner, const PlannedLayout& planned) {
  const RunPlan plan = short_run(planner.with(planned.choice));
  check_command(plan.config, Capability::kMeasuredRanks, "plan search --measure");
  check_memory(plan, memory_of_ranks(plan.config));
  const auto times = std::make_shared<StepTimes>();
  RuntimeEngine engine(default_components(make_world(plan.config), plan), plan);
  engine.add_hook(times);
  engine.fit();
  std::ranges::sort(times->wall_ms);
  return {planned, times->virtual_ms * 1e-3, times->wall_ms[times->wall_ms.size() / 2] * 1e-3};
}

}  // namespace

std::vector<MeasuredLayout> measure_layouts(const LayoutPlanner& planner, const std::vector<PlannedLayout>& rows,
                                            int count) {
  std::vector<MeasuredLayout> measured;
  for (const PlannedLayout& row : rows) {
    if (!planner.fits(row) || static_cast<int>(measured.size()) == count) break;
    measured.push_back(measure(planner, row));
  }
  return measured;
}

}  // namespace ranklab
