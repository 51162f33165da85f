// How far published runs were from their plans, most of which had a part in fitting them: what a plan says is given
// with the range that held 90 % of them (docs/planner.md). Thread rule: pure. Torch-free.
#pragma once
#include <string>
#include <utility>

#include "core/plan/measured/framework_memory.h"

namespace ranklab {

// Measured over predicted, of 90 % of the runs.
struct PlanBand {
  double step_low = 1, step_high = 1;
  double memory_low = 1, memory_high = 1;

  // The range for a plan's memory on its GPU, whose context is the same in every run.
  std::pair<double, double> on_device(const FrameworkMemory& memory) const {
    return {memory.context + memory_low * memory.reserved(), memory.context + memory_high * memory.reserved()};
  }
};

// `software`: of core/sim/software.h.
PlanBand plan_band(const std::string& software);
// "published runs", or whose they are where the software has none: for words of the range.
std::string plan_band_runs(const std::string& software);

}  // namespace ranklab
