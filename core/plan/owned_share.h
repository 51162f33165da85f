// What a rank owns when data-parallel ranks share out buckets (ZeRO stages 1 and 2, core/parallel/grad_reducer.h), and
// the gradients that it holds meanwhile. Torch-free. Cost: a visit of each bucket per rank that shares it. Thread rule:
// pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/plan/planned_parameters.h"

namespace ranklab {

// What one rank's optimizer updates.
struct OwnedShare {
  int64_t elements = 0;
  int64_t pieces = 0;  // of parameters
};
// Of the rank that owns most; without shards all of it.
OwnedShare largest_share(const std::vector<PlannedBucket>& buckets);

// Of stage 2: shards, and the buckets that are alive at once. What backward is just making comes on top.
int64_t peak_gradient_bytes(const StepShape& shape, const std::vector<PlannedBucket>& buckets);

}  // namespace ranklab
