#include "viz/model/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/pipeline/schedules.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/store/event_graph.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/selection.h"
#include "viz/model/what_if.h"

namespace ranklab::viz {
namespace {

using Kind = PathSegment::Kind;

void expect_whole(const CriticalPath& path, const std::string& what) {
  EXPECT_EQ(path.length_ns(), path.range.length_ns()) << what;
  int64_t reached = path.range.begin_ns;
  for (const PathSegment& segment : path.segments) {
    EXPECT_EQ(segment.range.begin_ns, reached) << what;
    EXPECT_FALSE(segment.range.empty()) << what;
    reached = segment.range.end_ns;
  }
  EXPECT_EQ(reached, path.range.end_ns) << what;
}

TEST(CriticalPath, OverTheTransferToTheLateMember) {
  const TraceStore store = samples::straggler_store();
  const CriticalPath path = find_critical_path(store, store.whole());
  expect_whole(path, "straggler");
  ASSERT_EQ(path.segments.size(), 3U);
  EXPECT_EQ(path.segments[0].kind, Kind::kWork);
  EXPECT_EQ(path.segments[0].rank_index, 0U);
  EXPECT_EQ(path.segments[0].range, (TimeRange{0, 100}));
  EXPECT_EQ(path.segments[1].kind, Kind::kTransfer);
  EXPECT_EQ(path.segments[1].range, (TimeRange{100, 130}));
  EXPECT_EQ(path.segments[2].kind, Kind::kWork);
  EXPECT_TRUE(path.on_path(*find_selection(store, "r0/F0")));
  EXPECT_FALSE(path.on_path(*find_selection(store, "r1/F0")));
  // Rank 1 could have worked 40 longer.
  EXPECT_EQ(path.slack_ns[0][0], 0);
  EXPECT_EQ(path.slack_ns[1][0], 40);
  EXPECT_EQ(path.slack_ns[1][1], 0);
}

TEST(CriticalPath, WhatIfTheTransferWereFree) {
  const TraceStore store = samples::straggler_store();
  const std::vector<WhatIf> table = what_if_table(store);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[0].what, "F");
  EXPECT_EQ(table[0].makespan_ns, 50);
  EXPECT_EQ(table[0].gain_ns, 100);
  EXPECT_EQ(table[0].on_path_ns, 100);
  EXPECT_EQ(table[0].next_bottleneck, "all_reduce dp");
  EXPECT_EQ(table[1].what, "all_reduce dp");
  EXPECT_EQ(table[1].makespan_ns, 120);
  EXPECT_EQ(table[1].on_path_ns, 30);
  EXPECT_EQ(table[1].next_bottleneck, "F");
  EXPECT_EQ(table[2].what, "optimizer");
  EXPECT_EQ(table[2].gain_ns, 20);
}

// Every schedule: the path is the makespan, what is on it has no slack, and slack is what the simulator says.
TEST(CriticalPath, AgreesWithTheSimulatorOnEverySchedule) {
  for (const ScheduleCosts& costs : {ScheduleCosts{}, ScheduleCosts{.f = 1.5, .b = 1.25, .w = 0.75, .c = 0.125}}) {
    for (const ScheduleKind& kind : schedule_kinds()) {
      const Schedule schedule = make_schedule(
          kind.name, {.num_ranks = 4, .num_microbatches = 8, .num_chunks = kind.chunks == 0 ? 2 : 1}, costs);
      const PipelineTimeline line = simulate(schedule, costs);
      const TraceStore store = schedule_store(schedule, line, costs.c);
      const CriticalPath path = find_critical_path(store, store.whole());
      expect_whole(path, kind.name);
      for (const PathSegment& segment : path.segments) EXPECT_NE(segment.kind, Kind::kUnknown) << kind.name;
      for (size_t r = 0; r < line.ranks.size(); ++r) {
        size_t action = 0;
        for (size_t e = 0; e < store.trace(r).events.size(); ++e) {
          if (path.on_path({r, e})) {
            EXPECT_EQ(path.slack_ns[r][e], 0) << kind.name << " " << store.text({r, e});
          }
          if (store.event({r, e}).kind != EventKind::kCompute) continue;
          const TimedAction& timed = line.ranks[r][action++];
          EXPECT_NEAR(static_cast<double>(path.slack_ns[r][e]), timed.slack * kScheduleUnitNs, 1)
              << kind.name << " rank " << r << " " << to_text(timed.action);
        }
      }
    }
  }
}

TEST(CriticalPath, RecordedDurationsGiveTheRecordedTimes) {
  const TraceStore store = schedule_store(make_schedule("zb-h1", {.num_ranks = 4, .num_microbatches = 8}),
                                          ScheduleCosts{.f = 1, .b = 1.5, .w = 0.5, .c = 0.25});
  const EventGraph graph = make_event_graph(store, store.whole());
  const GraphTimes times = time_graph(graph, recorded_durations(graph));
  EXPECT_EQ(times.end_ns, store.range().end_ns);
  for (size_t r = 0; r < graph.ranks.size(); ++r) {
    for (size_t p = 0; p < graph.ranks[r].points.size(); ++p)
      EXPECT_EQ(times.points[r][p], graph.ranks[r].points[p].time_ns);
  }
}

TEST(CriticalPath, FreeWeightGradientsMakeTheSchedulerLimitVisible) {
  // 1F1B p=4 m=8, F = B = W = 1: (m + p - 1) x 3 = 33. Without W: 22.
  const TraceStore store =
      schedule_store(make_schedule("gpipe", {.num_ranks = 4, .num_microbatches = 8}), ScheduleCosts{});
  const WhatIf free = what_if_free(store, "BW", [](const RankTrace& trace, const Event& event) {
    return event.kind == EventKind::kCompute && trace.names[event.name] == "BW";
  });
  EXPECT_EQ(store.range().length_ns(), 33 * kScheduleUnitNs);
  EXPECT_EQ(free.makespan_ns, 11 * kScheduleUnitNs);
  EXPECT_EQ(free.next_bottleneck, "F");
}

TEST(CriticalPath, OfOneStep) {
  std::vector<RankTrace> ranks;
  Tracer tracer(0, "");
  tracer.record(samples::compute(tracer, "F", 0, 10, 0));
  tracer.record(samples::compute(tracer, "F", 10, 25, 1));
  const TraceStore store(samples::file_of({tracer.take()}));
  const CriticalPath path = find_critical_path(store, *store.step_window(1));
  expect_whole(path, "step 1");
  EXPECT_EQ(path.length_ns(), 15);
}

TEST(CriticalPath, EmptyTrace) {
  const TraceStore store;
  EXPECT_TRUE(find_critical_path(store, store.whole()).segments.empty());
}

TEST(CriticalPath, StaysAreTheSegmentsOfARankAndAddUp) {
  CriticalPath path;
  path.range = {0, 100};
  const auto add = [&](PathSegment::Kind kind, size_t rank, int64_t from, int64_t to) {
    path.segments.push_back({kind, rank, {from, to}, {}});
  };
  add(PathSegment::Kind::kWork, 0, 0, 20);
  add(PathSegment::Kind::kTransfer, 1, 20, 25);
  add(PathSegment::Kind::kWork, 1, 25, 60);
  add(PathSegment::Kind::kUnknown, 1, 60, 62);
  add(PathSegment::Kind::kWork, 0, 62, 100);
  const std::vector<PathStay> stays = stays_of(path);
  ASSERT_EQ(stays.size(), 3U);
  EXPECT_EQ(stays[1].rank_index, 1U);
  EXPECT_EQ(stays[1].last - stays[1].first, 3U);
  EXPECT_EQ(stays[1].work_ns, 35);
  EXPECT_EQ(stays[1].transfer_ns, 5);
  EXPECT_EQ(stays[1].range.length_ns(), 42);
  int64_t sum = 0;
  for (const PathStay& stay : stays) sum += stay.range.length_ns();
  EXPECT_EQ(sum, path.range.length_ns());
}

}  // namespace
}  // namespace ranklab::viz
