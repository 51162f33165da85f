// Traffic by hand: bytes across nodes, and the textbook volumes of the axes that the runtime does not run yet.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/plan/planned_axes.h"
#include "core/plan/step_time.h"
#include "core/plan/step_walk.h"
#include "core/plan/traffic.h"

namespace ranklab {
namespace {

// 4 layers, hidden 64, 8 heads of 8, 2 key/value heads: 16 wide; 32 positions, 2 sequences: T = 64 tokens; fp32.
StepShape shape(ParallelDims dims) {
  StepShape s;
  s.model = {.num_layers = 4,
             .hidden_size = 64,
             .ffn_hidden_size = 96,
             .num_attention_heads = 8,
             .num_query_groups = 2,
             .vocab_size = 256,
             .seq_length = 32};
  s.dims = dims.resolved();
  s.micro_batch_size = 2;
  s.num_microbatches = 3;
  return s;
}

AxisTraffic row(const StepShape& s, Axis axis, int gpus_per_node) {
  for (const AxisTraffic& found : predict_axis_traffic(s, plain_schedule(s), DeviceMesh(s.dims), gpus_per_node)) {
    if (found.axis == axis) return found;
  }
  ADD_FAILURE() << "no row for " << name(axis);
  return {};
}

TEST(PlannedAxes, PipelineBoundariesCarryBsh) {
  const StepShape s = shape({.world = 4, .pp = 4});
  EXPECT_EQ(s.boundary_bytes(), 2 * 32 * 64 * 4);
  for (const auto& [stage, sends] : {std::pair{0, 3}, {1, 6}, {2, 6}, {3, 3}}) {
    const VerbTraffic traffic = predict_traffic(s, plain_schedule(s), stage).at({Axis::kPp, Verb::kSend});
    EXPECT_EQ(traffic.calls, sends) << "three microbatches to each neighbour of stage " << stage;
    EXPECT_EQ(traffic.logical_bytes, sends * 16384);
  }
  // Three boundaries, three microbatches, two directions. Nodes of two: only the boundary in the middle crosses. The
  // norm's 8 bytes are summed around the ring of four: two of its edges cross, 12 bytes a rank.
  const AxisTraffic pp = row(s, Axis::kPp, 2);
  EXPECT_EQ(pp.total_bytes, 3 * 3 * 2 * 16384 + 4 * 12);
  EXPECT_EQ(pp.bytes_across_nodes, 3 * 2 * 16384 + 2 * 12);
  EXPECT_FALSE(pp.planned);
}

TEST(PlannedAxes, TensorParallelRanksShareTheBoundary) {
  StepShape s = shape({.world = 4, .tp = 2, .pp = 2});
  EXPECT_EQ(s.boundary_bytes(), 16384);
  s.sequence_parallel = true;
  EXPECT_EQ(s.boundary_bytes(), 16384 / 2);
}

TEST(PlannedAxes, RingAttentionPassesKeysAndValues) {
  const StepShape s = shape({.world = 4, .cp = 4});
  EXPECT_EQ(key_value_bytes(s), 2 * (64 / 4) * 16 * 4) << "K and V of a quarter of the positions, 16 wide";
  const VerbTraffic traffic = predict_traffic(s, plain_schedule(s), 0).at({Axis::kCp, Verb::kSend});
  EXPECT_EQ(traffic.calls, 3 * 4 * (3 + 3 + 4)) << "microbatches x layers x (forward, again backward, gradients)";
  EXPECT_EQ(traffic.logical_bytes, traffic.calls * 2048);
  EXPECT_TRUE(predict_traffic(s, plain_schedule(s), 0).contains({Axis::kDpCp, Verb::kAllReduce}))
      << "weights are replicated over cp";
}

TEST(PlannedAxes, ExpertsExchangeTopKTokens) {
  StepShape s = shape({.world = 4, .ep = 4});
  s.num_experts = 8;
  s.router_topk = 2;
  const RankTraffic traffic = predict_traffic(s, plain_schedule(s), 0);
  const VerbTraffic moved = traffic.at({Axis::kEp, Verb::kAllToAll});
  EXPECT_EQ(moved.calls, 3 * 4 * 4) << "microbatches x layers x (dispatch and combine, forward and backward)";
  EXPECT_EQ(moved.logical_bytes, moved.calls * (64 * 2 * 64 * 4) * 3 / 4) << "a quarter stays";
  EXPECT_FALSE(traffic.contains({Axis::kEdp, Verb::kAllReduce})) << "edp is 1: nobody else holds these experts";
  const AxisTraffic ep = row(s, Axis::kEp, 2);
  const int64_t norm_bytes = 12;  // 8 bytes around a ring of four
  EXPECT_EQ(ep.bytes_across_nodes, 4 * (moved.logical_bytes * 2 / 3) + 2 * norm_bytes)
      << "two of three peers sit on the other node";
}

TEST(PlannedAxes, ExpertTensorParallelismGathersRoutedTokens) {
  StepShape s = shape({.world = 4, .tp = 2, .ep = 2, .etp = 2});
  s.num_experts = 2;
  s.sequence_parallel = true;
  const VerbTraffic gathered = predict_traffic(s, plain_schedule(s), 0).at({Axis::kEtp, Verb::kAllGather});
  EXPECT_EQ(gathered.calls, 3 * 4 * 2);
  EXPECT_EQ(gathered.logical_bytes, gathered.calls * (32 * 2 * 64 * 4) * 2);
}

TEST(NodeCrossing, ARingCrossesOncePerNode) {
  // tp 2 x dp 4 on nodes of 4: each dp ring 0 2 4 6 has two edges between the two nodes, tp pairs have none.
  const StepShape s = shape({.world = 8, .tp = 2});
  const AxisTraffic dp = row(s, Axis::kDp, 4);
  EXPECT_EQ(dp.groups, 2);
  EXPECT_EQ(dp.groups_across_nodes, 2);
  EXPECT_EQ(dp.total_bytes, 8 * dp.per_rank.ring_bytes);
  EXPECT_EQ(dp.bytes_across_nodes, 2 * 2 * dp.per_rank.ring_bytes);
  EXPECT_EQ(dp.per_rank.ring_bytes * 4, dp.per_rank.logical_bytes * 2 * 3);
  EXPECT_EQ(row(s, Axis::kTp, 4).bytes_across_nodes, 0);
  EXPECT_EQ(row(s, Axis::kTp, 8).bytes_across_nodes, 0);
  EXPECT_EQ(row(s, Axis::kDp, 8).bytes_across_nodes, 0);
  EXPECT_EQ(row(s, Axis::kDp, 2).bytes_across_nodes, 2 * 4 * dp.per_rank.ring_bytes) << "every edge";
}

TEST(NodeCrossing, RankOrderDecidesWhichAxisStaysInside) {
  StepShape s = shape({.world = 8, .tp = 2, .order = "dp-tp-cp-ep-pp"});
  EXPECT_EQ(row(s, Axis::kDp, 4).bytes_across_nodes, 0);
  EXPECT_GT(row(s, Axis::kTp, 4).bytes_across_nodes, 0);
}

}  // namespace
}  // namespace ranklab
