// Elements that share a scale must be on one rank: only then does quantizing a shard give the same as quantizing the
// whole matrix and sharding it. Tiles and blocks along a dimension that tensor parallelism shards must therefore lie
// inside one rank's shard (for fused parts, such as gate and up, of each part). Ranks agree on row and tensor scales,
// which fit every split. Torch-free. Cost: a pass over the kinds of modules. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument naming module, dimension, block and ranks, and what would fit. REQUIRES: the plan's policy
// and microbatches are set.
void check_quantization_split(const RunPlan& plan);

}  // namespace ranklab
