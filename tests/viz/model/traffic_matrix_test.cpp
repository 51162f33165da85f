#include "viz/model/tables/traffic_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/viz/model/expert_sample.h"
#include "viz/model/tables/traffic_text.h"

namespace ranklab::viz {
namespace {

using samples::Call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kLogical = TrafficLayer::kLogical;
constexpr auto kAlgorithm = TrafficLayer::kAlgorithm;

// Every rank of a group of `n` makes these calls.
TraceStore store_of_exchanges(int n, const std::function<std::vector<Call>(int rank)>& calls, Axis axis = Axis::kEp) {
  std::vector<RankTrace> ranks;
  std::vector<int> members;
  for (int r = 0; r < n; ++r) members.push_back(r);
  for (int r = 0; r < n; ++r) {
    Tracer tracer(r, "");
    tracer.set_group(axis, members);
    for (Call c : calls(r)) {
      c.axis = axis;
      tracer.record(samples::call(tracer, c));
    }
    ranks.push_back(tracer.take());
  }
  return TraceStore(samples::file_of(std::move(ranks)));
}

// The figures of the reference: 1024 tokens a rank, 2 experts each, hidden 256, bf16, 8 ranks.
TEST(TrafficMatrix, UniformAllToAll) {
  constexpr int64_t kTensor = 1024 * 2 * 256 * 2;
  const TraceStore store = store_of_exchanges(8, [](int) {
    return std::vector<Call>{{.verb = Verb::kAllToAll, .end = 10, .logical = kTensor, .algorithm = kTensor / 8 * 7}};
  });
  const TrafficMatrix matrix = traffic_matrix(store, store.whole());
  ASSERT_EQ(matrix.size(), 8U);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      EXPECT_EQ(matrix.at(i, j).of(kLogical), i == j ? 0 : 131'072);
      EXPECT_EQ(matrix.at(i, j).of(kAlgorithm), i == j ? 0 : 131'072);
    }
    EXPECT_EQ(matrix.row_sum(i).of(kLogical), 917'504);
    EXPECT_EQ(matrix.column_sum(i).of(kLogical), 917'504);
  }
  EXPECT_THAT(matrix.axes, ElementsAre(Axis::kEp));
  EXPECT_EQ(matrix.largest(kLogical), 131'072);
}

// Sums of the rows: tokens x k x hidden x bytes, less what stays; combine is the transpose of dispatch.
TEST(TrafficMatrix, AnAllToAllWithPartsIsLaidOnItsPairs) {
  const TraceStore store(samples::expert_run());
  const Window step = *store.step_window(1);
  const TrafficMatrix there = traffic_matrix(store, step, {.purpose = Purpose::kDispatch}),
                      back = traffic_matrix(store, step, {.purpose = Purpose::kCombine});
  int64_t to_expert_0 = 0;
  for (int layer = 1; layer <= 4; ++layer)
    to_expert_0 += static_cast<int64_t>(samples::sample_tokens(layer, 1)[0] * samples::kRowBytes);
  for (size_t i = 0; i < 8; ++i) {
    int64_t stays = 0;
    for (int layer = 1; layer <= 4; ++layer)
      stays += static_cast<int64_t>(samples::sample_tokens(layer, 1)[i] * samples::kRowBytes);
    EXPECT_EQ(there.kept_bytes[i], stays);
    EXPECT_EQ(there.row_sum(i).of(kLogical) + stays, 4 * 1024 * 2 * 256 * 2);
    for (const TrafficLayer layer : {kAlgorithm, TrafficLayer::kWire})
      EXPECT_EQ(there.row_sum(i).of(layer), there.row_sum(i).of(kLogical));
    for (size_t j = 0; j < 8; ++j) EXPECT_EQ(there.at(i, j).bytes, back.at(j, i).bytes) << i << " " << j;
  }
  EXPECT_EQ(there.at(3, 0).of(kLogical), to_expert_0);
  EXPECT_EQ(there.at(3, 5).messages, 3);  // of 4 layers: in one of them expert 5 is dead
  EXPECT_THAT(there.purposes, ElementsAre(Purpose::kDispatch, Purpose::kCombine));
  EXPECT_EQ(calls_between(store, step, 3, 5, {.purpose = Purpose::kCombine}).size(), 4U);
}

TEST(TrafficMatrix, LinksInsideNodesAndBetweenThem) {
  const TraceStore store(samples::expert_run());
  ASSERT_EQ(store.gpus_per_node(), 4);
  const auto sum = [&](NodeScope nodes, int gpus = 4) {
    return traffic_matrix(store, store.whole(), {.nodes = nodes, .gpus_per_node = gpus}).total().of(kLogical);
  };
  EXPECT_EQ(sum(NodeScope::kIntraNode) + sum(NodeScope::kInterNode), sum(NodeScope::kAll));
  EXPECT_EQ(sum(NodeScope::kInterNode, 8), 0);
  EXPECT_EQ(sum(NodeScope::kIntraNode, 1), 0);
  EXPECT_EQ(sum(NodeScope::kIntraNode, 0), sum(NodeScope::kAll)) << "not known: no filter";
  const TrafficMatrix inter =
      traffic_matrix(store, store.whole(), {.nodes = NodeScope::kInterNode, .gpus_per_node = 4});
  EXPECT_EQ(inter.at(0, 3).messages, 0);
  EXPECT_EQ(inter.kept_bytes[0], 0);
  EXPECT_EQ(inter.at(0, 4).messages, 2 * 4 * 6);
  EXPECT_TRUE(calls_between(store, store.whole(), 0, 3, {.nodes = NodeScope::kInterNode, .gpus_per_node = 4}).empty());
}

TEST(TrafficMatrix, WireBytesFollowTheParts) {
  std::vector<RankTrace> ranks;
  Tracer tracer(1, "");
  tracer.set_group(Axis::kEp, {0, 1, 2, 3});
  const double nan = std::nan("");
  tracer.record(samples::call(tracer, {.axis = Axis::kEp, .verb = Verb::kAllToAll, .logical = 9, .wire = 10}),
                {1, 1000, 2, nan});
  tracer.record(samples::call(tracer, {.axis = Axis::kEp, .verb = Verb::kAllToAll, .sequence = 1, .logical = 12}),
                {1, 2});  // of another group: as if there were none
  ranks.push_back(tracer.take());
  const TraceStore store(samples::file_of(std::move(ranks)));
  const TrafficMatrix matrix = traffic_matrix(store, store.whole());
  EXPECT_EQ(matrix.at(1, 0).of(TrafficLayer::kWire), 3);
  EXPECT_EQ(matrix.at(1, 2).of(TrafficLayer::kWire), 7);
  EXPECT_EQ(matrix.at(1, 0).of(kLogical), 1 + 3);
  EXPECT_EQ(matrix.at(1, 2).of(kLogical), 2 + 3);
  EXPECT_EQ(matrix.at(1, 3).of(kLogical), 3);
}

TEST(TrafficText, SaysWhatEachPurposeSends) {
  const TraceStore store(samples::expert_run());
  const auto rows = traffic_by_purpose(store, *store.step_window(0), {.gpus_per_node = 4});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].purpose, Purpose::kDispatch);
  EXPECT_EQ(rows[0].all.bytes, rows[1].all.bytes);
  EXPECT_EQ(rows[0].intra_node.of(kLogical) + rows[0].inter_node.of(kLogical), rows[0].all.of(kLogical));
  EXPECT_THAT(flows_text(traffic_flows(store, *store.step_window(0), {.gpus_per_node = 4}), 4),
              HasSubstr("intra-node   inter-node   (4 GPUs a node)\n  ep: dispatch        "));
  EXPECT_THAT(flows_text(traffic_flows(samples::straggler_store(), {{0, 1000}, -1}, {}), 0), HasSubstr("wire\n  dp   "))
      << "of no purpose: by its axis alone";
  EXPECT_EQ(flows_text({}, 8), "");
  const TraceStore uniform = store_of_exchanges(2, [](int) {
    return std::vector<Call>{{.verb = Verb::kAllReduce, .end = 10, .logical = 4096, .algorithm = 4096}};
  });
  EXPECT_EQ(matrix_text(traffic_matrix(uniform, uniform.whole()), kLogical),
            "from \\ to           r0          r1         sent\n"
            "r0                   -    4.00 KiB     4.00 KiB\n"
            "r1            4.00 KiB           -     4.00 KiB\n"
            "got           4.00 KiB    4.00 KiB     8.00 KiB\n");
}

TEST(TrafficMatrix, ARingSendsToTheNextMember) {
  const TraceStore store = store_of_exchanges(4, [](int) {
    return std::vector<Call>{{.verb = Verb::kAllReduce, .end = 100, .logical = 4000, .algorithm = 6000, .wire = 3}};
  });
  const TrafficMatrix matrix = traffic_matrix(store, store.whole());
  for (size_t i = 0; i < 4; ++i) {
    const TrafficCell& cell = matrix.at(i, (i + 1) % 4);
    EXPECT_EQ(cell.of(kLogical), 6000);  // 2 x 3/4
    EXPECT_EQ(cell.of(kAlgorithm), 6000);
    EXPECT_EQ(cell.of(TrafficLayer::kWire), 3);
    EXPECT_EQ(cell.messages, 1);
    EXPECT_EQ(cell.time_ns, 100);
    EXPECT_DOUBLE_EQ(cell.gb_per_s(kAlgorithm), 60);
    EXPECT_EQ(matrix.row_sum(i).of(kAlgorithm), 6000);
  }
  EXPECT_EQ(matrix.at(1, 0).messages, 0);
  EXPECT_EQ(matrix.total().of(kLogical), 24'000);
}

TEST(TrafficMatrix, ABroadcastEndsBeforeItsRoot) {
  const TraceStore store = store_of_exchanges(4, [](int) {
    return std::vector<Call>{{.verb = Verb::kBroadcast, .end = 1, .logical = 8, .algorithm = 8, .peer = 2}};
  });
  const TrafficMatrix matrix = traffic_matrix(store, store.whole());
  EXPECT_EQ(matrix.at(2, 3).of(kLogical), 8);
  EXPECT_EQ(matrix.at(3, 0).of(kLogical), 8);
  EXPECT_EQ(matrix.at(0, 1).of(kLogical), 8);
  EXPECT_EQ(matrix.at(1, 2).of(kLogical), 0);
  EXPECT_EQ(matrix.total().of(kLogical), 24);
}

TEST(TrafficMatrix, MessagesCountOnceAndBySender) {
  const TraceStore store = store_of_exchanges(
      2,
      [](int rank) {
        return std::vector<Call>{{.verb = rank == 0 ? Verb::kSend : Verb::kRecv,
                                  .begin = 5,
                                  .end = 9,
                                  .logical = 64,
                                  .algorithm = 64,
                                  .wire = 64,
                                  .peer = 1 - rank}};
      },
      Axis::kPp);
  const TrafficMatrix matrix = traffic_matrix(store, store.whole());
  EXPECT_EQ(matrix.at(0, 1).of(kLogical), 64);
  EXPECT_EQ(matrix.total().messages, 1);
  EXPECT_EQ(calls_between(store, store.whole(), 0, 1).size(), 1U);
  EXPECT_TRUE(calls_between(store, store.whole(), 1, 0).empty());
  EXPECT_EQ(traffic_matrix(store, store.whole(), {.axis = Axis::kTp}).total().messages, 0);
  EXPECT_EQ(traffic_matrix(store, {{100, 200}, -1}).total().messages, 0);
}

TEST(TrafficMatrix, UnevenPartsKeepTheirSum) {
  const TraceStore store = store_of_exchanges(
      4, [](int) { return std::vector<Call>{{.verb = Verb::kAllToAll, .end = 1, .logical = 4, .algorithm = 100}}; });
  const TrafficMatrix matrix = traffic_matrix(store, store.whole());
  EXPECT_EQ(matrix.at(0, 1).of(kAlgorithm), 34);
  EXPECT_EQ(matrix.at(0, 2).of(kAlgorithm), 33);
  EXPECT_EQ(matrix.row_sum(0).of(kAlgorithm), 100);
}

TEST(TrafficMatrix, StepByStep) {
  const TraceStore store = store_of_exchanges(2, [](int) {
    return std::vector<Call>{{.sequence = 0, .end = 1, .algorithm = 10, .step = 3},
                             {.sequence = 1, .posted = 2, .begin = 2, .end = 3, .algorithm = 30, .step = 4}};
  });
  const std::vector<StepTraffic> steps = traffic_by_step(store, 0, 64);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[0].matrix.total().of(kAlgorithm), 20);
  EXPECT_EQ(steps[1].matrix.total().of(kAlgorithm), 60);
  EXPECT_EQ(traffic_by_step(store, 0, 1).back().step, 3);
  EXPECT_EQ(traffic_by_step(store, 1, 64).front().step, 4);
  EXPECT_TRUE(traffic_by_step(store, 2, 1).empty());
}

TEST(TrafficMatrix, APartOfTheStepsHasTheCursors) {
  const TraceStore store = store_of_exchanges(2, [](int) {
    std::vector<Call> calls;
    for (int i = 0; i < 10; ++i) calls.push_back({.sequence = i, .begin = i, .end = i + 1, .step = 100 + i});
    return calls;
  });
  EXPECT_EQ(first_of_part(store, -1, 4), 0U);
  EXPECT_EQ(first_of_part(store, 103, 4), 0U);
  EXPECT_EQ(first_of_part(store, 104, 4), 4U);
  EXPECT_EQ(first_of_part(store, 107, 4), 4U);
  EXPECT_EQ(first_of_part(store, 109, 4), 6U);  // the last part is full, too
  EXPECT_EQ(first_of_part(store, 109, 64), 0U);
}

}  // namespace
}  // namespace ranklab::viz
