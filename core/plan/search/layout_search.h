// Searches for the layout with the shortest step that fits a GPU: plans the candidates that are likely fast, then what
// differs in one thing from the best of them, until nothing improves or so many were planned. Where several are planned
// side by side, those that would come next if nothing surprised are planned ahead; the result is the same. Where only
// so many of the best are asked for, layouts that earlier plans show to be slower (layout_bound.h) are not planned; the
// best are the same. Torch-free. Cost: a plan each, some tenths of a second. Thread rule: pure but for its calls of
// `plan`.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/plan/search/layout_candidates.h"

namespace ranklab {

struct PlannedLayout {
  LayoutChoice choice;
  double step_s = 0;
  double mfu = 0;
  double bytes = 0;     // of the fullest rank
  double pass_s = 0;    // of a microbatch in all stages together (layout_bound.h); 0: not known
  std::string refused;  // why it cannot be; empty: it can
};

struct SearchLimits {
  double bytes = 0;  // that a rank may hold
  int plans = 48;    // made at most, but for those made ahead in vain
  int at_once = 1;   // plans that are made side by side
  int best = 0;      // how many of the fastest must be right; 0: every layout is planned
  PinnedLayout pinned = {};
};

// Plans in the order of the choices.
using LayoutPlans = std::function<std::vector<PlannedLayout>(const std::vector<LayoutChoice>&)>;

// RETURNS: every layout that was planned, those that fit first, the fastest first; with `best` at least so many of
// these are what they would be if all were planned.
std::vector<PlannedLayout> search_layouts(const TrainConfig& config, const HardwareProfile& profile,
                                          const SearchLimits& limits, const LayoutPlans& plan);

// Whether no other row that fits is as fast and as small, and faster or smaller.
bool on_front(const std::vector<PlannedLayout>& rows, const PlannedLayout& row, double most_bytes);

}  // namespace ranklab
