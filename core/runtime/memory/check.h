// Checks, before any rank starts, that the memory a run always needs fits this machine: all ranks of a thread world
// share one memory.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

// Bytes of the parameters, gradients and optimizer state of all ranks together. Weights are counted as split over tp,
// and experts over ep and etp (norms are not split, but small); with a ZeRO stage once per group that shards them, and
// twice where the schedule holds the model twice. Activations and gathered parameters are not included.
int64_t fixed_bytes(const RunPlan& plan);

// Throws kEnvironment, naming both numbers and what would fit, when fixed_bytes() exceeds `available_bytes` (0: what
// the system reports as available).
void check_memory(const RunPlan& plan, int64_t available_bytes = 0);

}  // namespace ranklab
