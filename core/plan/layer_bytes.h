// What one layer keeps of a microbatch for its backward, recorded on shapes. Cost: recording the model's layers once.
// Thread rule: as record_step().
#pragma once
#include <cstdint>

#include "core/plan/record_step.h"

namespace ranklab {

// Bytes on one rank, for the last layer: the one with experts where a model has any. Of layers that are recomputed
// together, each has its share.
int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
