// Sweeps among measured runs: rows of one source, release and machine that differ only in their layout. For each sweep,
// checks whether the layout that plans find fastest is about as fast as the fastest one measured, which is what a
// search must achieve. Thread rule: pure. Torch-free.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/plan/measured/measured_runs.h"

namespace ranklab {

// A layout counts as well chosen if it takes at most this fraction longer than the fastest one.
inline constexpr double kAboutAsFast = 0.05;

// A run with a measured step time, and the step time predicted by its plan.
struct TimedRun {
  const MeasuredRun* run = nullptr;
  double predicted_s = 0;
};

struct LayoutSweep {
  std::string what;  // "72 layers of 14336, 384 GPUs, batch 2048 (BLOOM layout sweep)"
  size_t layouts = 0;
  std::string chosen, fastest;         // ids of rows: the fastest according to the plans, and as measured
  double chosen_s = 0, fastest_s = 0;  // measured, averaged over rows of the same layout

  bool right() const;
};

// Sweeps of at least two layouts, in the order of their first rows.
std::vector<LayoutSweep> layout_sweeps(std::span<const TimedRun> runs);

}  // namespace ranklab
