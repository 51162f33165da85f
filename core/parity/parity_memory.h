// How much memory parity takes, said before it runs: it keeps every tensor of every rank and step. An estimate of the
// plan alone. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

// Bytes of a record of so many steps (parity_record.h): activations and their gradients at each module, weights,
// gradients before and after their reduction, moments, updated weights.
int64_t kept_bytes(const RunPlan& plan, int64_t steps);

// `reference`: null for an audit. Throws kEnvironment naming both numbers, where it is more than `available_bytes` (0:
// what the system reports).
void check_parity_memory(const RunPlan& plan, const RunPlan* reference, int64_t steps, int64_t available_bytes = 0);

}  // namespace ranklab
