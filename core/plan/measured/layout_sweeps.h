// Sweeps among measured runs: rows of one source, release and machine that differ in their layout alone. Of each,
// whether the layout that a plan finds fastest is about as fast as the fastest one measured, which is what a search is
// asked for. Thread rule: pure. Torch-free.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/plan/measured/measured_runs.h"

namespace ranklab {

// How much longer than the fastest a layout may take that is as good as chosen.
inline constexpr double kAboutAsFast = 0.05;

// A run with a measured step time, and its plan's.
struct TimedRun {
  const MeasuredRun* run = nullptr;
  double predicted_s = 0;
};

struct LayoutSweep {
  std::string what;  // "72 layers of 14336, 384 GPUs, batch 2048 (BLOOM layout sweep)"
  size_t layouts = 0;
  std::string chosen, fastest;         // ids of rows: the fastest by plan, and as measured
  double chosen_s = 0, fastest_s = 0;  // measured, in the mean of rows of the same layout

  bool right() const;
};

// Of two layouts or more, in the order of their first rows.
std::vector<LayoutSweep> layout_sweeps(std::span<const TimedRun> runs);

}  // namespace ranklab
