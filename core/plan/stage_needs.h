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

// One moment of a backward: the loss, the head, or the busiest one of layers that are there together, and when the
// gradients of their weights are made.
enum class MomentKind { kLoss, kHead, kLayers, kProducts };
struct BackwardMoment {
  MomentKind kind = MomentKind::kLoss;
  int64_t first_layer = -1, end_layer = -1;  // of kLayers and kProducts
  int64_t whole = 0;                         // on top of what was kept when BW began; below 0: less by now
  int64_t split = 0;                         // ... of B alone, which leaves what W needs
};

struct StageNeeds {
  int64_t kept = 0;           // from F to B, tensors handed between stages included
  int64_t deferred = 0;       // from B to W
  int64_t row_gradients = 0;  // of them gathered over tp (a category of its own with sequence parallelism)
  int64_t weight_pass = 0;    // in W, on top: an activation's output, made again for the product behind it
  int64_t per_layer = 0;      // kept by the layer that keeps most
  std::vector<BackwardMoment> moments = {};  // in order
};

StageNeeds stage_needs(const StepShape& shape, const Schedule& schedule, int stage);

}  // namespace ranklab
