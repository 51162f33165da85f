// Decides where to put the weight gradients. A schedule whose ranks list only F and B is simulated in time order; a
// rank runs a pending W where it would otherwise be idle, or where its next F would not fit in memory. The remaining W
// run at the end. The automatic scheduler of Qi et al. (arXiv 2401.10241, section 3) treats W in this way, but searches
// the order of F and B, which is given here. Cost: O(actions log ranks). Torch-free. Thread rule: pure function.
#pragma once
#include "core/pipeline/schedule.h"

namespace ranklab {

struct WeightPlacement {
  double memory_limit = 0;  // limit per rank, in activations of a whole rank; 0: none
  // A rank waits for its next action, instead of running a W, if that action is ready within this fraction of a W.
  double patience = 0;
  // The same after the rank's last F. There, W compete with B for which others wait, and may be postponed.
  double patience_at_end = 0;
  // A rank whose next action is ready before a W would end waits for it, as long as the total of its waits stays within
  // this time: a rank that is not the slowest may idle that long without making the step longer.
  double idle_allowed = 0;
};

struct PlacedWeights {
  Schedule schedule;
  bool within_limit = true;  // false: the order of F and B alone needs more memory
  double makespan = 0;       // the largest time from a rank's first start to its last end
};

// REQUIRES: `skeleton` has every F and B of one chain, and would be sound except for the missing W.
PlacedWeights place_weight_grads(Schedule skeleton, const ScheduleCosts& costs, const WeightPlacement& rules);

}  // namespace ranklab
