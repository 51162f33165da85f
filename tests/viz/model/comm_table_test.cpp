#include "viz/model/tables/comm_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/model/make_trace.h"
#include "viz/model/tables/mismatch_view.h"

namespace ranklab::viz {
namespace {

using samples::Call;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CommTable, FourTimesAndBandwidth) {
  const TraceStore store = samples::straggler_store();
  const std::vector<CommCall> calls = comm_calls(store, store.whole());
  ASSERT_EQ(calls.size(), 1U);
  const CommCall& call = calls[0];
  EXPECT_EQ(call.verb, Verb::kAllReduce);
  EXPECT_THAT(call.group, ElementsAre(0, 1));
  ASSERT_EQ(call.sides.size(), 2U);
  EXPECT_EQ(call.sides[1].posted_ns, 60);
  EXPECT_EQ(call.sides[1].matched_ns, 100);
  EXPECT_EQ(call.sides[1].first_byte_ns, 100);
  EXPECT_EQ(call.sides[1].done_ns, 130);
  EXPECT_EQ(call.skew_ns, 40);
  EXPECT_EQ(call.last_rank, 0);
  EXPECT_EQ(call.elements, 250);
  EXPECT_DOUBLE_EQ(call.algbw_gb_per_s, 1000.0 / 30);
  EXPECT_DOUBLE_EQ(call.busbw_gb_per_s, 1000.0 / 30);  // 2 (n-1) / n is 1 for two ranks
  EXPECT_THAT(call.missing, IsEmpty());
  EXPECT_EQ(cell_text(store, call, CommColumn::kSkew), "40 ns");
  EXPECT_EQ(cell_text(store, call, CommColumn::kAxis), "dp 0 1");
}

TEST(CommTable, FactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(busbw_factor(Verb::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(busbw_factor(Verb::kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(busbw_factor(Verb::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(busbw_factor(Verb::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(busbw_factor(Verb::kBroadcast, 8), 1);
  EXPECT_DOUBLE_EQ(busbw_factor(Verb::kSend, 2), 1);
}

// Three dp ranks; each makes the calls given for it.
TraceStore store_of_calls(const std::vector<std::vector<Call>>& by_rank) {
  std::vector<RankTrace> ranks;
  std::vector<int> members;
  for (size_t r = 0; r < by_rank.size(); ++r) members.push_back(static_cast<int>(r));
  for (size_t r = 0; r < by_rank.size(); ++r) {
    Tracer tracer(static_cast<int>(r), "");
    tracer.set_group(Axis::kDp, members);
    for (const Call& c : by_rank[r]) tracer.record(samples::call(tracer, c));
    ranks.push_back(tracer.take());
  }
  return TraceStore(samples::file_of(std::move(ranks)));
}

Call numbered(int64_t sequence, Verb verb = Verb::kAllReduce) {
  return {.verb = verb,
          .sequence = sequence,
          .posted = 10 * sequence,
          .begin = 10 * sequence,
          .end = 10 * sequence + 5 + sequence,
          .logical = 4096};
}

TEST(CommTable, SortsByAnyColumn) {
  const std::vector<Call> three = {numbered(0), numbered(1), numbered(2)};
  const TraceStore store = store_of_calls({three, three});
  const std::vector<CommCall> calls = comm_calls(store, store.whole());
  std::vector<uint32_t> order;
  sort_calls(calls, CommColumn::kDuration, false, order);
  EXPECT_THAT(order, ElementsAre(2, 1, 0));
  sort_calls(calls, CommColumn::kLogical, false, order);  // all equal: in order of begin
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(Mismatch, ASkippedCallIsNamed) {
  const TraceStore store = store_of_calls({{numbered(0), numbered(1)}, {numbered(0), numbered(1)}, {numbered(0)}});
  const std::vector<MismatchView> views = mismatch_views(store);
  ASSERT_EQ(views.size(), 1U);
  EXPECT_EQ(views[0].divergence, 1);
  EXPECT_THAT(views[0].odd_ranks, ElementsAre(2));
  EXPECT_EQ(views[0].verdict, "rank 2 did not make call 1 of dp (all_reduce, fp32, 4.00 KiB)");
  ASSERT_EQ(views[0].cells.size(), 3U);
  EXPECT_TRUE(views[0].cells[1][1].made);
  EXPECT_FALSE(views[0].cells[2][1].made);
  EXPECT_THAT(comm_calls(store, store.whole()).back().missing, ElementsAre(2));
}

TEST(Mismatch, AnotherVerbIsNamed) {
  const TraceStore store = store_of_calls({{numbered(0)}, {numbered(0, Verb::kAllGather)}, {numbered(0)}});
  const std::vector<MismatchView> views = mismatch_views(store);
  ASSERT_EQ(views.size(), 1U);
  EXPECT_THAT(views[0].odd_ranks, ElementsAre(1));
  EXPECT_EQ(views[0].verdict,
            "rank 1 made all_gather, fp32, 4.00 KiB where others made all_reduce, fp32, 4.00 KiB: call 0 of dp");
}

TEST(Mismatch, SoundGroupsShowTheirLastCalls) {
  std::vector<Call> many;
  for (int i = 0; i < 100; ++i) many.push_back(numbered(i));
  const std::vector<MismatchView> views = mismatch_views(store_of_calls({many, many}), 10);
  ASSERT_EQ(views.size(), 1U);
  EXPECT_EQ(views[0].divergence, -1);
  EXPECT_EQ(views[0].verdict, "");
  EXPECT_EQ(views[0].first_sequence, 90);
  EXPECT_EQ(views[0].cells[0].size(), 10U);
}

}  // namespace
}  // namespace ranklab::viz
