// Elements that share a scale must be on one rank: only then does quantizing a shard give the same as quantizing the
// whole matrix and sharding it. Tiles and blocks along a dimension that tensor parallelism shards must therefore lie
// inside one rank's shard (for fused parts, such as gate and up, of each part). Scales of whole rows and tensors fit
// every split, because the ranks agree on them. Torch-free. Cost: one pass over the kinds of modules. Thread rule:
// pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument naming the module, dimension, block size and ranks, and values that would fit. REQUIRES: the
// plan's policy and microbatches are set.
void check_quantization_split(const RunPlan& plan);

}  // namespace ranklab
