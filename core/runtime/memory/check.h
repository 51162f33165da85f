// Checks that a run's fixed memory fits this machine, before any rank starts: all ranks of a thread world share one
// memory.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

// Parameters, gradients and optimizer state of all ranks together, in bytes: weights are counted as split over tp,
// experts over ep and etp (norms are not split, and small), once per group that shards them with a ZeRO stage, and
// twice where the schedule holds the model twice. Activations and gathered parameters come on top.
int64_t fixed_bytes(const RunPlan& plan);

// Throws kEnvironment naming both numbers and what would fit when fixed_bytes() is more than `available_bytes` (0: what
// the system reports as available).
void check_memory(const RunPlan& plan, int64_t available_bytes = 0);

}  // namespace ranklab
