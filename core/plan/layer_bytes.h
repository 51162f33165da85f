// What one layer keeps of a microbatch for its backward, in bytes on one rank: as recorded, and as a paper counts it.
// Cost: recording the model's layers once. Thread rule: as for record_step().
#pragma once
#include <cstdint>

#include "core/plan/record_step.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

// For the model's last layer, recorded on shapes. (Where a model's first layers are dense, the last one has experts.)
// If several layers are recomputed together, the mean of those at the end.
int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world);

// For the GPT block of Korthikanti et al. 2022 (arXiv 2205.05198, table 2 and section 5): 2 bytes per activation, 1
// byte per dropout mask element, attention with its matrix of scores. s positions, b sequences, h hidden, a heads, t
// tensor-parallel ranks.
//   none       t = 1: s b h (34 + 5 a s / h); tp alone: s b h (10 + 24 / t + 5 a s / (h t)); with sequence parallelism
//              s b h / t (34 + 5 a s / h)
//   selective  the same without the scores' 5 a s / h
//   full       2 s b h, the layer's input (with sequence parallelism and its input sharded / t)
double paper_layer_bytes(const RunPlan& plan, Recompute granularity);

}  // namespace ranklab
