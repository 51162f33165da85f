// What a microbatch holds on one stage of a pipeline, in elements on one rank: what it keeps from F to B and from B to
// W, and how much more there is while its backward goes from the last layer to the first, freeing what it has passed.
// Layers that are computed again (core/model/recompute_policy.h) keep their input, and are there as a whole when
// backward comes to them. Torch-free. Cost: a few additions a layer. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/pipeline/schedule.h"
#include "core/plan/layer_memory.h"

namespace ranklab {

// One moment of a backward: that of the loss, or of layers that are there together.
struct BackwardMoment {
  int64_t first_layer = -1, end_layer = -1;  // -1: the loss
  int64_t whole = 0;                         // on top of what was kept when BW began; below 0: less by now
  int64_t split = 0;                         // ... of B alone, which leaves what W needs
};

struct StageNeeds {
  int64_t kept = 0;           // from F to B, tensors handed between stages included
  int64_t deferred = 0;       // from B to W
  int64_t row_gradients = 0;  // of them gathered over tp (a category of its own with sequence parallelism)
  int64_t per_layer = 0;      // kept by the layer that keeps most
  std::vector<BackwardMoment> moments = {};  // in order
};

StageNeeds stage_needs(const StepShape& shape, const Schedule& schedule, int stage);

}  // namespace ranklab
