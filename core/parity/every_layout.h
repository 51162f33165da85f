// Every way to lay a run out over its world: each factorization over dp, cp, tp and pp, and of those each choice of
// layout_features.h by itself. Torch-free. Thread rule: pure.
#pragma once
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// Every split of a world's ranks over pp, tp, cp and dp.
std::vector<ParallelDims> every_split(int world);
// Those that the model and the batch allow, each of one or two microbatches a rank (pipelines: of two a stage).
std::vector<TrainConfig> every_layout(const TrainConfig& config);

}  // namespace ranklab
