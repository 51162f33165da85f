// All layouts of a run over its world: each factorization into dp, cp, tp and pp, and for each of these every single
// choice of layout_features.h. Torch-free. Thread rule: pure.
#pragma once
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// Every factorization of a world's ranks into pp, tp, cp and dp.
std::vector<ParallelDims> every_split(int world);
// The layouts that the model and the batch allow, each with one or two microbatches per rank (pipelines: two per
// stage).
std::vector<TrainConfig> every_layout(const TrainConfig& config);

}  // namespace ranklab
