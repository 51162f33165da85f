// Whether a run's fixed memory fits this machine, asked before any rank starts: all ranks of a thread world share one
// memory.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

// Parameters, gradients and optimizer state of all ranks together, in bytes, every weight counted as split over tp, of
// experts over ep and etp (norms are not, and are small), once a group that shares it out with a ZeRO stage, and twice
// where the schedule holds the model twice. Activations and what is gathered for a use come on top.
int64_t fixed_bytes(const RunPlan& plan);

// Throws kEnvironment naming both numbers and what would fit when fixed_bytes() is more than `available_bytes`
// (0: what the system says is available).
void check_memory(const RunPlan& plan, int64_t available_bytes = 0);

}  // namespace ranklab
