// Where to put the weight gradients. A schedule whose ranks list F and B only is simulated in time order; a rank runs a
// pending W where it would be idle otherwise, or where its next F would not fit in memory. Remaining W run at the end.
// This is how the automatic scheduler of Qi et al. (arXiv 2401.10241, section 3) treats W, with the order of F and B
// given instead of searched. Cost: O(actions log ranks). Torch-free. Thread rule: pure function.
#pragma once
#include "core/pipeline/schedule.h"

namespace ranklab {

struct WeightPlacement {
  double memory_limit = 0;  // of a rank, in activations of a whole rank; 0: none
  // A rank whose next action is ready in less than this fraction of a W waits for it instead.
  double patience = 0;
  // The same after its last F. W then compete with B that others wait for, and may come later.
  double patience_at_end = 0;
  // A rank whose next action comes before a W would end waits for it as long as all of its waiting stays within this
  // time: a rank that is not the slowest may idle so long without making the step longer.
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
