// What activations take on a rank at their peak: what every layer keeps for its backward, and the
// temporaries of the loss or of the last layer's backward on top, whichever is more; in a pipeline times the
// microbatches in flight (the accounting of Korthikanti et al. 2022, arXiv 2205.05198, for the tensors that this
// implementation keeps: norms and activation functions are computed again, attention keeps no score matrix). Within
// kActivationTolerance of the peak that MemoryBook measures (tests/plan). Cost: a few additions. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/plan/step_shape.h"

namespace ranklab {

constexpr double kActivationTolerance = 0.10;

struct ActivationBytes {
  int64_t per_layer = 0;           // of a microbatch, kept for backward
  int64_t per_layer_deferred = 0;  // kept between B and W of a split backward: what the weights' products need
  double microbatches = 0;         // in a stage at the worst moment, deferred ones in proportion
  int64_t layers = 0;              // of all of them together, tensors handed between stages included
  int64_t ends = 0;                // kept by the embedding, the last norm and the position tables
  int64_t temporary = 0;           // at the busiest moment
  int64_t gathered = 0;            // tensors of all positions (sequence parallelism); a category of its own
  int64_t peak() const { return layers + ends + temporary; }
};

// On a rank of the pipeline, which holds as many microbatches as its schedule has in flight.
ActivationBytes estimate_activations(const StepShape& shape, const Schedule& schedule, int pp_rank);

}  // namespace ranklab
