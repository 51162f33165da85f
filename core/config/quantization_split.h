// Numbers that share a scale must be on one rank: only then does quantizing a part of a matrix give what quantizing the
// whole and cutting it would. Tiles and blocks along a dimension that tensor parallelism cuts must therefore lie inside
// the ranks' parts (of fused parts, such as gate and up, each of its own). Ranks agree on the scales of rows and of
// whole tensors, which fit every cut. Torch-free. Cost: a pass over the kinds of modules. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument naming module, dimension, block and ranks, and what would fit. REQUIRES: the plan's policy
// and microbatches.
void check_quantization_split(const RunPlan& plan);

}  // namespace ranklab
