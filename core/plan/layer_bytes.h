// What one layer keeps of a microbatch for its backward: the difference between a model with it and one without, both
// recorded on shapes. Cost: recording a few layers twice. Thread rule: as record_step().
#pragma once
#include <cstdint>

#include "core/plan/record_step.h"

namespace ranklab {

// Bytes on one rank, for the last layer: the one with experts where a model has any.
int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
