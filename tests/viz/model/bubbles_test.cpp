#include "viz/model/tables/bubbles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/pipeline/schedules.h"
#include "core/trace/failed_event.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/stalls.h"
#include "viz/model/store/time_text.h"
#include "viz/model/text_timeline.h"

namespace ranklab::viz {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

Schedule schedule_of(const std::string& name, int ranks, int microbatches, int chunks = 1) {
  return make_schedule(name, {.num_ranks = ranks, .num_microbatches = microbatches, .num_chunks = chunks});
}

// A rank that had nothing to do when the run failed is not one that was done.
TEST(Bubbles, AfterAStepBrokeOffNothingIsKnown) {
  Tracer tracer(0, "dp0"), other(1, "dp1");
  tracer.record(samples::compute(tracer, "F", 0, 40, 3));
  other.record(samples::compute(other, "F", 0, 100, 3));
  for (Tracer* each : {&tracer, &other}) {
    Event call = samples::compute(
        *each, std::string(kUnfinishedCall) + (each == &tracer ? "barrier on dp" : "all_reduce on dp"), 100, 100, 3);
    call.kind = EventKind::kInstant;
    each->record(call);
    Event mark = samples::compute(*each, std::string(kFailedEvent), 100, 100, 3);
    mark.kind = EventKind::kInstant;
    each->record(mark);
  }
  const TraceStore store(samples::file_of({tracer.take(), other.take()}));
  EXPECT_THAT(store.warning(),
              testing::AllOf(testing::HasSubstr("the run failed in step 3"),
                             testing::HasSubstr("; rank 1 in all_reduce on dp; rank 0 in barrier on")));
  EXPECT_TRUE(store.partial());
  const BubbleReport report = find_bubbles(store, store.whole());
  EXPECT_EQ(report.ranks[0].unrecorded, (TimeRange{40, 100}));
  EXPECT_EQ(report.all.bubble_ns, 0);
}

// The phases of a step do not say when a rank works and when it waits.
TEST(Bubbles, NothingIsKnownOfATraceOfPhases) {
  Tracer tracer(0, "dp0");
  tracer.record(samples::phase(tracer, "step", 0, 100));
  tracer.record(samples::phase(tracer, "forward-backward", 0, 80));
  TraceFile file;
  file.clock = TraceClock::kVirtual;
  file.ranks = {tracer.trace()};
  const TraceStore store(std::move(file));
  const BubbleReport report = find_bubbles(store, store.whole());
  EXPECT_EQ(report.all.total_ns, 0);
  EXPECT_TRUE(report.ranks[0].idle.empty());
  EXPECT_THAT(report.ranks[0].lost, ElementsAre(TimeRange{0, 100}));
  EXPECT_THAT(share_texts(report.all), ElementsAre("-", "-", "-", "-"));
  EXPECT_THAT(text_totals(store, store.whole()), testing::HasSubstr("--trace-level action"));
  EXPECT_EQ(why_phases_only(schedule_store(schedule_of("1f1b", 2, 2), {.f = 1, .b = 1, .w = 1})), "");
}

TEST(Bubbles, GoldenFigures1F1B) {
  const TraceStore store = schedule_store(schedule_of("1f1b", 8, 32), {.f = 1, .b = 1, .w = 1});
  const BubbleReport report = find_bubbles(store, store.whole());
  EXPECT_EQ(format_time(store, report.range.length_ns()), "117 units");
  EXPECT_EQ(format_percent(report.all.bubble_of_total()), "17.95 %");
  EXPECT_EQ(format_percent(report.all.bubble_of_ideal()), "21.88 %");
  EXPECT_EQ(report.all.exposed_ns, 0);
  for (const RankBubbles& rank : report.ranks) EXPECT_EQ(rank.time.busy_ns, 96 * kScheduleUnitNs);
}

TEST(Bubbles, ClosedFormsOfThePapers) {
  struct Row {
    const char* schedule;
    int microbatches, chunks;
    const char* of_total;
  };
  for (const Row& row : {Row{"gpipe", 8, 1, "46.67 %"}, Row{"1f1b", 16, 1, "30.43 %"}, Row{"gpipe", 32, 1, "17.95 %"},
                         Row{"interleaved-1f1b", 32, 2, "9.86 %"}, Row{"interleaved-1f1b", 32, 4, "5.19 %"},
                         Row{"zb-h1", 32, 1, "6.80 %"}}) {
    const TraceStore store =
        schedule_store(schedule_of(row.schedule, 8, row.microbatches, row.chunks), ScheduleCosts{});
    const BubbleReport report = find_bubbles(store, store.whole());
    EXPECT_EQ(format_percent(report.all.bubble_of_total()), row.of_total) << row.schedule;
  }
}

TEST(Bubbles, EveryScheduleAddsUpToItsSimulation) {
  const ScheduleCosts costs = {.f = 1.5, .b = 1.25, .w = 0.75, .c = 0.125};
  for (const ScheduleKind& kind : schedule_kinds()) {
    const Schedule schedule = make_schedule(
        kind.name, {.num_ranks = 4, .num_microbatches = 8, .num_chunks = kind.chunks == 0 ? 2 : 1}, costs);
    const PipelineTimeline line = simulate(schedule, costs);
    const TraceStore store = schedule_store(schedule, line, costs.c);
    const BubbleReport report = find_bubbles(store, store.whole());
    EXPECT_EQ(report.range.length_ns(), std::llround(line.end * kScheduleUnitNs)) << kind.name;
    for (size_t r = 0; r < line.ranks.size(); ++r) {
      double busy = 0, idle = 0;
      for (const TimedAction& timed : line.ranks[r]) busy += timed.end - timed.begin;
      for (const Idle& each : line.idle[r]) idle += each.end - each.begin;
      const TimeSplit& time = report.ranks[r].time;
      EXPECT_NEAR(static_cast<double>(time.busy_ns), busy * kScheduleUnitNs, 1) << kind.name << " rank " << r;
      EXPECT_NEAR(static_cast<double>(time.bubble_ns + time.exposed_ns), idle * kScheduleUnitNs, 1) << kind.name;
      EXPECT_EQ(time.by_cause_ns[static_cast<size_t>(BubbleCause::kHost)], 0) << kind.name;
    }
  }
}

TEST(Bubbles, NameTheActionWaitedFor) {
  const TraceStore store = schedule_store(schedule_of("1f1b", 2, 2), {.f = 1, .b = 1, .w = 1});
  // rank 0: F0 F1 . BW0 . BW1      rank 1: . F0 BW0 F1 BW1 .
  const BubbleReport report = find_bubbles(store, store.whole());
  const std::vector<IdleInterval>& first = report.ranks[0].idle;
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].range, (TimeRange{2 * kScheduleUnitNs, 4 * kScheduleUnitNs}));
  EXPECT_EQ(describe(first[0]), "waits for r1 BW0 (dependency)");
  EXPECT_EQ(describe(first[1]), "waits for r1 BW1 (dependency)");
  const std::vector<IdleInterval>& second = report.ranks[1].idle;
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(describe(second[0]), "waits for r0 F0 (warm-up)");
  EXPECT_EQ(second[1].cause, BubbleCause::kDrain);
}

TEST(Bubbles, StragglerAndExposedTransfer) {
  const TraceStore store = samples::straggler_store();
  const BubbleReport report = find_bubbles(store, store.whole());
  ASSERT_EQ(report.ranks.size(), 2U);
  EXPECT_EQ(report.ranks[0].time.busy_ns, 120);
  EXPECT_EQ(report.ranks[0].time.exposed_ns, 30);
  EXPECT_EQ(report.ranks[0].time.bubble_ns, 0);
  EXPECT_EQ(report.ranks[1].time.busy_ns, 80);
  EXPECT_EQ(report.ranks[1].time.bubble_ns, 40);
  ASSERT_EQ(report.ranks[1].idle.size(), 2U);
  EXPECT_EQ(describe(report.ranks[1].idle[0]), "waits for r0 F0 (straggler)");
  EXPECT_EQ(report.ranks[1].idle[1].cause, BubbleCause::kExposed);
  EXPECT_DOUBLE_EQ(report.all.bubble_of_total(), 40.0 / 300);
  EXPECT_DOUBLE_EQ(report.all.exposed_share(), 60.0 / 300);
}

TEST(Bubbles, ALateRankIsInItsOptimizer) {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "");
    tracer.set_group(Axis::kDp, {0, 1});
    const int64_t done = rank == 0 ? 50 : 90;
    tracer.record(samples::compute(tracer, "BW", 0, 40, 0, 3, rank));
    tracer.record(samples::phase(tracer, "optimizer", 45, 110));
    tracer.record(
        samples::call(tracer, {.posted = done, .begin = 90, .end = 100, .exposed = 10, .peer_wait = 90 - done}));
    tracer.record(samples::phase(tracer, "step", 0, 110));
    ranks.push_back(tracer.take());
  }
  const TraceStore store(samples::file_of(std::move(ranks)));
  const auto late = work_before(store, 1, 90), busy = work_before(store, 1, 30);
  ASSERT_TRUE(late && busy);
  EXPECT_EQ(store.text(*late), "optimizer");
  EXPECT_EQ(store.text(*busy), "BW3");
}

// After a pipeline's last work a rank waits for the others to drain, whatever call it does that in.
TEST(Bubbles, WaitingAfterTheLastWorkIsDrain) {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "");
    tracer.set_group(Axis::kPp, {0, 1});
    const int64_t done = rank == 0 ? 10 : 50;
    tracer.record(samples::compute(tracer, "BW", 0, done, 0, 3, rank));
    tracer.record(samples::call(
        tracer, {.axis = Axis::kPp, .posted = done, .begin = 50, .end = 60, .exposed = 10, .peer_wait = 50 - done}));
    ranks.push_back(tracer.take());
  }
  const TraceStore store(samples::file_of(std::move(ranks)));
  const BubbleReport report = find_bubbles(store, *store.step_window(0));
  ASSERT_EQ(report.ranks[0].idle.size(), 2U);
  EXPECT_EQ(describe(report.ranks[0].idle[0]), "waits for r1 BW3 (drain)");
  EXPECT_EQ(report.ranks[0].idle[1].cause, BubbleCause::kExposed);
}

// Its optimizer has a phase and no compute span.
TEST(Bubbles, ARankWithoutPeersWaitsForNobody) {
  Tracer tracer(0, "rank0");
  tracer.set_group(Axis::kDp, {0});
  for (const int step : {0, 1}) {
    const int64_t begin = step * 100;
    tracer.record(samples::compute(tracer, "F", begin, begin + 80, step, 0));
    tracer.record(samples::phase(tracer, "optimizer", begin + 80, begin + 100, step));
  }
  const TraceStore store(samples::file_of({tracer.take()}));
  const BubbleReport report = find_bubbles(store, store.whole());
  EXPECT_EQ(report.all.busy_ns, 200);
  EXPECT_TRUE(report.ranks[0].idle.empty());
}

// After a rank's last event a live run or a broken file says nothing: neither bubbles nor work.
TEST(Bubbles, WhatWasNotRecordedIsNoBubble) {
  TraceStore store = schedule_store(schedule_of("1f1b", 4, 8), {.f = 1, .b = 1, .w = 1});
  const BubbleReport whole = find_bubbles(store, store.whole());
  ASSERT_GT(whole.ranks[3].time.by_cause_ns[static_cast<size_t>(BubbleCause::kDrain)], 0);
  EXPECT_TRUE(whole.ranks[3].unrecorded.empty());
  store.set_live(true);
  const BubbleReport live = find_bubbles(store, store.whole());
  for (size_t r = 0; r < 4; ++r) {
    const RankBubbles &before = whole.ranks[r], &now = live.ranks[r];
    EXPECT_EQ(now.time.by_cause_ns[static_cast<size_t>(BubbleCause::kDrain)], 0) << r;
    EXPECT_EQ(now.unrecorded.length_ns(), before.time.by_cause_ns[static_cast<size_t>(BubbleCause::kDrain)]) << r;
    EXPECT_EQ(now.time.busy_ns, before.time.busy_ns) << r;
    EXPECT_EQ(now.time.total_ns + now.unrecorded.length_ns(), before.time.total_ns) << r;
  }
}

// A recorder that is full loses what comes after.
TEST(Bubbles, AfterAFullRecordersLastEventNothingIsKnown) {
  const auto drain = [](int64_t dropped) {
    std::vector<RankTrace> ranks;
    for (const int rank : {0, 1}) {
      Tracer tracer(rank, "");
      tracer.record(samples::compute(tracer, "F", 0, rank == 0 ? 10 : 50, 0, 0, rank));
      ranks.push_back(tracer.take());
    }
    ranks[0].dropped = dropped;
    const TraceStore store(samples::file_of(std::move(ranks)));
    return find_bubbles(store, store.whole()).all.by_cause_ns[static_cast<size_t>(BubbleCause::kDrain)];
  };
  EXPECT_EQ(drain(0), 40);
  EXPECT_EQ(drain(3), 0);
}

// While the run continues, the wait after a rank's last work so far may be a wait for more work.
TEST(Bubbles, NoRankOfALiveRunIsDoneWithItsLastStep) {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "");
    tracer.set_group(Axis::kPp, {0, 1});
    const int64_t done = rank == 0 ? 10 : 50;
    tracer.record(samples::compute(tracer, "F", 0, done, 0, 0, rank));
    tracer.record(samples::call(
        tracer, {.axis = Axis::kPp, .posted = done, .begin = 50, .end = 60, .exposed = 10, .peer_wait = 50 - done}));
    ranks.push_back(tracer.take());
  }
  TraceStore store(samples::file_of(std::move(ranks)));
  const auto drain = [&] {
    return find_bubbles(store, *store.step_window(0)).all.by_cause_ns[static_cast<size_t>(BubbleCause::kDrain)];
  };
  EXPECT_EQ(drain(), 40);
  store.set_live(true);
  EXPECT_EQ(drain(), 0);
}

// A viewer that came late to a live run, or was too slow for it, has lost events: what a rank did then is not known.
TEST(Bubbles, WhatAViewerLostIsNeitherWorkNorABubble) {
  const TraceStore whole = schedule_store(schedule_of("1f1b", 2, 4), {.f = 1, .b = 1, .w = 1});
  // rank 0: F0 F1 . BW0 F2 . BW1 F3 . BW2 . BW3      rank 1: . F0 BW0 F1 BW1 F2 BW2 F3 BW3 .
  const auto part = [&](size_t rank, size_t from, size_t to, int64_t dropped) {
    RankTrace trace = whole.trace(rank);
    std::vector<Event> kept;
    for (const Event& event : trace.events) {
      const int64_t end = end_ns(event, TraceClock::kVirtual);
      if (end > static_cast<int64_t>(from) * kScheduleUnitNs && end <= static_cast<int64_t>(to) * kScheduleUnitNs)
        kept.push_back(event);
    }
    trace.events = kept;
    trace.dropped = dropped;
    return trace;
  };
  TraceStore live;
  live.set_live(true);
  live.append(part(0, 0, 5, 0));
  live.append(part(0, 8, 100, 7));  // too slow: lost what ended from 5 to 8
  live.append(part(1, 8, 100, 9));  // too late: lost what ended until 8
  live.set_live(false);
  const BubbleReport report = find_bubbles(live, live.whole());
  for (size_t r = 0; r < 2; ++r) {
    const RankBubbles& rank = report.ranks[r];
    ASSERT_EQ(rank.lost.size(), 1U) << r;
    EXPECT_EQ(rank.time.by_cause_ns[static_cast<size_t>(BubbleCause::kWarmUp)], 0) << r;
    EXPECT_EQ(rank.time.total_ns + rank.lost[0].length_ns(), live.range().length_ns()) << r;
    EXPECT_EQ(rank.time.total_ns, rank.time.busy_ns + rank.time.exposed_ns + rank.time.bubble_ns) << r;
    for (const IdleInterval& idle : rank.idle)
      EXPECT_TRUE(idle.range.end_ns <= rank.lost[0].begin_ns || idle.range.begin_ns >= rank.lost[0].end_ns) << r;
  }
  EXPECT_EQ(report.ranks[1].lost[0].begin_ns, live.range().begin_ns);
  // In what it has seen, the rank worked as in the whole.
  const Window seen{{report.ranks[1].lost[0].end_ns, live.range().end_ns}, -1};
  EXPECT_EQ(find_bubbles(live, seen).ranks[1].time.busy_ns, find_bubbles(whole, seen).ranks[1].time.busy_ns);
  EXPECT_EQ(report.ranks[1].time.busy_ns, find_bubbles(whole, seen).ranks[1].time.busy_ns);
}

TEST(Bubbles, WallClockGapsBelongToTheCallThatCoversThem) {
  Tracer tracer(0, "");
  tracer.set_group(Axis::kDp, {0, 1});
  tracer.record(samples::on_wall_clock(samples::compute(tracer, "F", 0, 0), 10, 40));
  Event reduce = samples::on_wall_clock(samples::call(tracer, {}), 40, 90);
  reduce.wall_matched_ns = 70;
  tracer.record(reduce);
  tracer.record(samples::on_wall_clock(samples::compute(tracer, "optimizer", 0, 0), 95, 100));
  TraceFile file = samples::file_of({tracer.take()});
  file.clock = TraceClock::kWall;
  const TraceStore store(std::move(file));
  const BubbleReport report = find_bubbles(store, {{0, 100}, -1});
  const TimeSplit& time = report.ranks[0].time;
  EXPECT_EQ(time.busy_ns, 35);
  EXPECT_EQ(time.exposed_ns, 20);
  EXPECT_EQ(time.by_cause_ns[static_cast<size_t>(BubbleCause::kWarmUp)], 10);
  EXPECT_EQ(time.by_cause_ns[static_cast<size_t>(BubbleCause::kStraggler)], 30);
  EXPECT_EQ(time.by_cause_ns[static_cast<size_t>(BubbleCause::kHost)], 5);
}

TEST(Bubbles, IdleStripIsTheShareOfIdleRanks) {
  const TraceStore store = schedule_store(schedule_of("1f1b", 2, 1), {.f = 1, .b = 1, .w = 1});
  // rank 0: F . . BW BW     rank 1: . F BW BW . .  (BW takes 2)
  const BubbleReport report = find_bubbles(store, store.whole());
  EXPECT_THAT(idle_strip(report, store.range(), 6),
              ElementsAre(FloatNear(0.5F, 1e-6F), FloatNear(0.5F, 1e-6F), FloatNear(0.5F, 1e-6F),
                          FloatNear(0.5F, 1e-6F), FloatNear(0.5F, 1e-6F), FloatNear(0.5F, 1e-6F)));
  EXPECT_THAT(idle_strip(report, {0, kScheduleUnitNs / 2}, 2), ElementsAre(0.5F, 0.5F));
}

TEST(TimeText, NeighbouringTicksDiffer) {
  const TraceStore store;
  EXPECT_EQ(tick_text(store, 91'520'000, 20'000), "91.52 ms");
  EXPECT_EQ(tick_text(store, 91'540'000, 20'000), "91.54 ms");
  EXPECT_EQ(tick_text(store, 1'200'000, 200'000), "1.20 ms") << "with the usual digits where they do";
  EXPECT_EQ(tick_text(store, 12'345'678'000, 1000), "12.345678 s");
  EXPECT_EQ(tick_text(store, 750, 250), "750 ns");
  EXPECT_EQ(
      tick_text(schedule_store(schedule_of("1f1b", 2, 2), {.f = 1, .b = 1, .w = 1}), kScheduleUnitNs, kScheduleUnitNs),
      "1 unit");
}

}  // namespace
}  // namespace ranklab::viz
