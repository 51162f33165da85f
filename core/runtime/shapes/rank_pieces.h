// What a rank of a layout would write into a checkpoint: which slice of which global tensor, according to its own
// snapshot (core/runtime/checkpoint/snapshot.h), built on shapes. With this a checkpoint is resharded without starting
// any rank. Cost: a model and its optimizer without memory. Thread rule: as for build_rank().
#pragma once
#include <vector>

#include "core/checkpoint/slices.h"
#include "core/config/train_config.h"
#include "core/runtime/shapes/shape_world.h"

namespace ranklab {

std::vector<NamedSlice> rank_pieces(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world);

}  // namespace ranklab
