// The way back from a checkpoint into one rank's weights, moments and buffers, whatever layout wrote it: each piece
// this rank updates is read by its global elements (core/checkpoint/checkpoint.h), then the optimizer makes parameters
// of its masters and gathers what its peers own. Cost: reads what this rank holds of the model. Thread rule: every rank
// calls it, on its own thread; the checkpoint is shared.
#pragma once
#include <set>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/runtime/components.h"

namespace ranklab {

struct Restored {
  int64_t missing_moments = 0;  // tensors that the checkpoint has not: they begin at zero
  // What was kept in another type and is rounded or widened: "exp_avg BF16 to F32".
  std::set<std::string> converted = {};
};

// Collective. `weights_only`: moments stay at zero, updates at 0, the loss scale at its start. Throws kBadFile naming
// the tensor.
Restored restore(const Checkpoint& checkpoint, StepContext& context, bool weights_only);

}  // namespace ranklab
