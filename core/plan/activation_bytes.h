// What activations take on a rank at their peak: what every layer keeps for its backward (layer_memory.h), and the
// temporaries of the loss or of a layer's backward on top, whichever is more; in a pipeline times the microbatches in
// flight. Within kActivationTolerance of the peak that MemoryBook measures (tests/plan). Cost: a few additions a layer.
// Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/pipeline/schedule.h"
#include "core/plan/step_shape.h"

namespace ranklab {

constexpr double kActivationTolerance = 0.10;

struct ActivationBytes {
  int64_t per_layer = 0;    // of a microbatch, kept for backward, by the layer that keeps most
  double microbatches = 0;  // in a stage at the worst moment, deferred ones in proportion
  int64_t layers = 0;       // of all of them together, tensors handed between stages included
  int64_t ends = 0;         // kept by the embedding, the last norm and the position tables
  int64_t temporary = 0;    // at the busiest moment
  int64_t gathered = 0;     // tensors of all positions (sequence parallelism); a category of its own
  int64_t peak() const { return layers + ends + temporary; }
};

// On a rank of the pipeline, which holds as many microbatches as its schedule has in flight.
ActivationBytes estimate_activations(const StepShape& shape, const Schedule& schedule, int pp_rank);

}  // namespace ranklab
