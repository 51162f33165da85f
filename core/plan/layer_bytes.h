// What one layer keeps of a microbatch for its backward: a model with it less one without, recorded on shapes. Cost:
// two records of a few layers. Thread rule: as record_step().
#pragma once
#include <cstdint>

#include "core/plan/record_step.h"

namespace ranklab {

// Bytes on one rank, of the last layer: the one with experts where a model has any.
int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
