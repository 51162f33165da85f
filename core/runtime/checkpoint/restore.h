// Restores one rank's weights, moments and buffers from a checkpoint, whatever layout wrote it: each piece that this
// rank updates is read by its global element indices (core/checkpoint/checkpoint.h); then the optimizer copies main
// parameters to parameters and gathers what its peers own. Cost: reads what this rank holds of the model. Thread rule:
// every rank calls it, on its own thread; the checkpoint is shared.
#pragma once
#include <set>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/runtime/components.h"

namespace ranklab {

struct Restored {
  int64_t missing_moments = 0;  // number of tensors that the checkpoint lacks; they start at zero
  int64_t new_histories = 0;    // number of amax histories of delayed scaling that it lacks; they also start at zero
  // Tensors that were stored in another dtype and were therefore rounded or widened: "exp_avg BF16 to F32".
  std::set<std::string> converted = {};
};

// Collective. `weights_only`: moments and the number of updates stay 0, and the loss scale keeps its initial value.
// Throws kBadFile naming the tensor.
Restored restore(const Checkpoint& checkpoint, StepContext& context, bool weights_only);

}  // namespace ranklab
