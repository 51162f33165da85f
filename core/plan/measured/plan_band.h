// How far published runs were from their plans; most of these runs were also used for fitting. A plan's figures are
// given together with the range that contained 90 % of the runs (docs/planner.md). Thread rule: pure. Torch-free.
#pragma once
#include <string>
#include <utility>

#include "core/plan/measured/framework_memory.h"

namespace ranklab {

// Measured over predicted values; 90 % of the runs lie in these ranges.
struct PlanBand {
  double step_low = 1, step_high = 1;
  double memory_low = 1, memory_high = 1;

  // The range for a plan's total memory on its GPU. The context is the same in every run, so the ratios do not apply to
  // it.
  std::pair<double, double> on_device(const FrameworkMemory& memory) const {
    return {memory.context + memory_low * memory.reserved(), memory.context + memory_high * memory.reserved()};
  }
};

// `software`: a name of core/sim/software.h.
PlanBand plan_band(const std::string& software);
// Describes the runs behind the range: "published runs", or whose runs are used if this software has none.
std::string plan_band_runs(const std::string& software);

}  // namespace ranklab
