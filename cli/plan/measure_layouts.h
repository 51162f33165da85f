// `plan search --measure N`: runs the best layouts for a few steps on simulated ranks of this machine. Thread rule:
// main thread.
#pragma once
#include <vector>

#include "cli/plan/plan_layouts.h"

namespace ranklab {

struct MeasuredLayout {
  PlannedLayout planned;
  double virtual_s = 0;  // a step's time on the profile
  double wall_s = 0;     // the median of several steps on this machine
};

// Measures the first `count` layouts that fit. Throws kEnvironment if this machine has too little memory.
std::vector<MeasuredLayout> measure_layouts(const LayoutPlanner& planner, const std::vector<PlannedLayout>& rows,
                                            int count);

}  // namespace ranklab
