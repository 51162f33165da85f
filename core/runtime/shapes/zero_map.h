// Who owns what when data-parallel ranks shard buckets: for every bucket of a pipeline rank its parameters, and which
// of their elements each member of the group updates. The buckets are those of the run's own optimizers, built on
// shapes. Cost: a model and its optimizer without memory; one visit per piece. Thread rule: as for build_rank().
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/runtime/shapes/shape_world.h"

namespace ranklab {

struct OwnedRange {
  int group_rank = 0;
  int64_t begin = 0, end = 0;  // range of the parameter's elements on this rank
};

struct ZeroMapRow {
  std::string parameter;
  int64_t elements = 0;            // on this rank
  std::vector<OwnedRange> owners;  // in ascending order
};

struct ZeroMapBucket {
  Axis axis = Axis::kDp;  // the axis of the group that shards it
  int shards = 1;
  std::string unit = {};  // stage 3: the unit that is gathered and freed together
  int64_t elements = 0, padding = 0;
  std::vector<ZeroMapRow> rows;
};

// What one member of the data-parallel group holds for its update: shards of dense parameters, and of the experts that
// it shares with its edp peers.
struct ZeroMapRank {
  int dp_rank = 0, group_rank = 0;  // group_rank: among the ranks that share dense parameters, context ranks included
  int64_t elements = 0;             // number of elements that it updates
  int64_t parameter_bytes = 0;      // between uses
  int64_t gradient_bytes = 0, optimizer_bytes = 0;
};

struct ZeroMap {
  std::vector<ZeroMapBucket> buckets;
  std::vector<ZeroMapRank> ranks;  // for tp rank 0
};

// REQUIRES: pp_rank is a pipeline rank of the plan.
ZeroMap zero_map(const RunPlan& plan, int pp_rank, const ShapeWorldMaker& make_world);

// One line per piece that each rank owns, in ascending rank: "[ZeRO Debug][rank=3] param[7] layers.0.mlp.down.weight dp
// numel=44032 shard=[0:11008) group_size=4 group_rank=1"
std::vector<std::string> zero_debug_lines(const RunPlan& plan, const ShapeWorldMaker& make_world);

}  // namespace ranklab
