// Estimates, before a parity run, how much memory it takes: it keeps every tensor of every rank and step. The estimate
// uses only the plan. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

// Bytes of a record (parity_record.h) of `steps` steps: activations and their gradients at each module, weights,
// gradients before and after their reduction, moments, updated weights.
int64_t kept_bytes(const RunPlan& plan, int64_t steps);

// `reference`: null for an audit. Throws kEnvironment, naming both numbers, if parity would take more than
// `available_bytes` (0: what the system reports).
void check_parity_memory(const RunPlan& plan, const RunPlan* reference, int64_t steps, int64_t available_bytes = 0);

}  // namespace ranklab
