#include "core/trace/trace_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/trace/sample_trace.h"

namespace ranklab {
namespace {

using ::testing::HasSubstr;

TraceFile one_rank(const std::vector<Event>& events) {
  TraceFile file;
  file.ranks.emplace_back();
  file.ranks[0].names = {"x"};
  file.ranks[0].label = "dp0";
  file.ranks[0].events = events;
  return file;
}

Event transfer(Axis axis, int64_t begin, int64_t end, int64_t exposed, int64_t peer_wait) {
  Tracer names(0, "");
  Event event = trace_samples::collective(names, axis, Verb::kAllReduce, 0, begin, end);
  event.name = 0;
  event.virtual_exposed_ns = exposed;
  event.virtual_peer_wait_ns = peer_wait;
  return event;
}

// Compute 0-100, a transfer 50-150 of which 50 show, a wait for a peer of 30, a transfer of 20, and 40 of compute.
TEST(TraceReport, PartsAddUpToTheTotal) {
  Event step;
  step.kind = EventKind::kPhase;
  step.virtual_end_ns = 240;
  const RankSummary rank =
      summarize(one_rank({transfer(Axis::kDp, 50, 150, 50, 0), transfer(Axis::kTp, 180, 200, 20, 30), step}))[0];
  EXPECT_EQ(rank.total_ns, 240);
  EXPECT_EQ(rank.exposed_ns[static_cast<size_t>(Axis::kDp)], 50);
  EXPECT_EQ(rank.exposed_ns[static_cast<size_t>(Axis::kTp)], 20);
  EXPECT_EQ(rank.peer_wait_ns, 30);
  EXPECT_EQ(rank.compute_ns, 140);
  EXPECT_EQ(rank.communication_ns(), 120);
  EXPECT_DOUBLE_EQ(rank.overlap().value(), 1 - 70.0 / 120);
}

TEST(TraceReport, OnTheWallClockComputeIsWhatItsSpansCover) {
  TraceFile file = one_rank({});
  file.clock = TraceClock::kWall;
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{0, 10}, {5, 20}, {6, 8}, {30, 40}}) {
    Event event;
    event.kind = EventKind::kCompute;
    event.wall_begin_ns = begin;
    event.wall_end_ns = end;
    file.ranks[0].events.push_back(event);
  }
  EXPECT_EQ(summarize(file)[0].compute_ns, 30);
  EXPECT_EQ(summarize(file)[0].total_ns, 40);
}

TEST(TraceReport, AnEmptyRankIsAllZeros) {
  const RankSummary rank = summarize(one_rank({}))[0];
  EXPECT_EQ(rank.total_ns, 0);
  EXPECT_EQ(rank.overlap(), std::nullopt);
}

// Unknown is not zero: a trace of phases gives only its length, and the wall clock gives no waits.
TEST(TraceReport, WhatWasNotRecordedIsNotTold) {
  Event step;
  step.kind = EventKind::kPhase;
  step.virtual_end_ns = 2400;
  const std::vector<RankSummary> phases = summarize(one_rank({step}));
  EXPECT_THAT(format_summary(phases), HasSubstr("    2.40 us          -          -        -"));
  const auto rank = nlohmann::json::parse(format_summary_json(phases)).at("ranks").at(0);
  EXPECT_EQ(rank.at("total_ns"), 2400);
  for (const char* key : {"compute_ns", "peer_wait_ns", "exposed_ns", "overlap"}) EXPECT_TRUE(rank.at(key).is_null());

  Event reduce = transfer(Axis::kDp, 0, 0, 0, 0);
  reduce.wall_end_ns = 5000;
  TraceFile wall = one_rank({reduce});
  wall.clock = TraceClock::kWall;
  EXPECT_THAT(format_summary(summarize(wall)), HasSubstr("    5.00 us       0 ns          -              -        -"));
}

TEST(TraceReport, TheTableNamesRanksAxesAndTraffic) {
  TraceFile file;
  file.ranks = trace_samples::sample_traces();
  file.ranks[1].dropped = 4;
  const std::string table = format_summary(summarize(file));
  for (const char* text :
       {"0 dp0", "1 dp1", "exposed dp", "exposed pp", "all_reduce", "send", "dropped 4 events", "8.00 KiB"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  const auto json = nlohmann::json::parse(format_summary_json(summarize(file)));
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][0]["exposed_ns"]["dp"], 1001);
  EXPECT_EQ(json["ranks"][0]["traffic"].size(), 2u);
  EXPECT_EQ(json["ranks"][1]["dropped"], 4);
}

}  // namespace
}  // namespace ranklab
