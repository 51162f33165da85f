// Searches for the layout with the shortest step that fits a GPU: plans the candidates that are likely fast, then
// layouts that differ from the best of these in one property, until nothing improves or the limit of plans is reached.
// If several plans are made side by side, the search also plans ahead what would come next if there were no surprises;
// the result is the same. If only a number of best layouts is requested, layouts that earlier plans show to be slower
// (layout_bound.h) are not planned; the best are the same. Torch-free. Cost: some tenths of a second per plan. Thread
// rule: pure except for its calls of `plan`.
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
  double bytes = 0;     // for the fullest rank
  double pass_s = 0;    // of a microbatch in all stages together (layout_bound.h); 0: unknown
  std::string refused;  // why it is impossible; empty if it is possible
};

struct SearchLimits {
  double bytes = 0;  // limit per rank
  int plans = 48;    // maximum number of plans, not counting those made ahead in vain
  int at_once = 1;   // number of plans made side by side
  int best = 0;      // how many of the fastest layouts must be right; 0: every layout is planned
  PinnedLayout pinned = {};
};

// Returns plans in the order of the choices.
using LayoutPlans = std::function<std::vector<PlannedLayout>(const std::vector<LayoutChoice>&)>;

// RETURNS: every layout that was planned, those that fit first, in order of step time. With `best`, at least that many
// of the first are the same as if all layouts had been planned.
std::vector<PlannedLayout> search_layouts(const TrainConfig& config, const HardwareProfile& profile,
                                          const SearchLimits& limits, const LayoutPlans& plan);

// Whether the row is Pareto-optimal: no other row that fits is at least as fast and as small, and better in one of the
// two.
bool on_front(const std::vector<PlannedLayout>& rows, const PlannedLayout& row, double most_bytes);

}  // namespace ranklab
