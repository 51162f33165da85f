// What a recorded step sends on each axis of its mesh, and how much of it leaves a node. Logical bytes are the payload
// of a verb (elements of the full tensor); ring bytes are what a rank sends under the ring algorithms of
// core/sim/link_cost.h, 2(n-1)/n of the logical bytes for an all_reduce.
//
// Across nodes: a ring visits its members in group order and closes; a rank's bytes leave the node when its successor
// is on another one. Members are in ascending global rank and nodes hold neighbouring ranks, so a group on k > 1 nodes
// crosses on exactly k edges, the minimum for a ring (NCCL orders its rings the same way: each node once). An
// all_to_all sends each peer its part directly; a message crosses when its two ends are on different nodes. The bytes
// that a group's members send are those of the rank that was recorded for them; where the bytes go is determined
// separately for each member, since the groups of an axis may be placed differently on the nodes. Cost: one visit per
// group member. Thread rule: pure.
#pragma once
#include <vector>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

struct AxisTraffic {
  Axis axis = Axis::kWorld;
  int group_size = 1;
  int groups = 0;
  int groups_across_nodes = 0;
  VerbTraffic per_rank = {};       // for the busiest rank
  int64_t total_bytes = 0;         // sent by all ranks
  int64_t bytes_across_nodes = 0;  // the part of total_bytes that leaves a node
};

// One row per axis larger than one that the step uses, in the order tp, cp, dp, dp-cp, pp, ep, etp, edp.
std::vector<AxisTraffic> axis_traffic(const StepRecord& record, const RunPlan& plan);

}  // namespace ranklab
