// Maps our element types and reductions to NCCL's. Verbs that only move data move bytes, so every dtype works;
// reductions need a type that NCCL can add. Thread rule: pure.
#pragma once
#include <c10/core/ScalarType.h>
#include <nccl.h>

#include "core/base/vocabulary.h"

namespace ranklab {

// Throws kInvalidArgument for types that NCCL cannot add.
ncclDataType_t nccl_type(c10::ScalarType type);
ncclRedOp_t nccl_reduction(ReduceOp op);

}  // namespace ranklab
