// What one layer keeps of a microbatch for its backward, in bytes on one rank. Cost: recording the model's layers once.
// Thread rule: as for record_step().
#pragma once
#include <cstdint>

#include "core/plan/record_step.h"

namespace ranklab {

// For the model's last layer, recorded on shapes. (Where a model's first layers are dense, the last one has experts.)
// If several layers are recomputed together, the mean of those at the end.
int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
