// The simulator against the oracle's longest paths, and the accounts it gives of idle time.
#include "core/pipeline/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/pipeline/all_schedules.h"
#include "tests/pipeline/oracle.h"

namespace ranklab {
namespace {

const ScheduleCosts kCosts = {.f = 3, .b = 2.5, .w = 1.25, .c = 0.5};

double busy(const std::vector<TimedAction>& rank) {
  double sum = 0;
  for (const TimedAction& timed : rank) sum += timed.end - timed.begin;
  return sum;
}

TEST(Simulate, BusyAndIdleFillEveryRankWithoutGapOrOverlap) {
  for (const Schedule& schedule : all_schedules({1, 2, 4, 6}, {1, 4, 12, 24}, kCosts)) {
    const PipelineTimeline line = simulate(schedule, kCosts);
    for (size_t rank = 0; rank < line.ranks.size(); ++rank) {
      std::vector<std::pair<double, double>> pieces;
      double idle = 0;
      for (const TimedAction& timed : line.ranks[rank]) pieces.emplace_back(timed.begin, timed.end);
      for (const Idle& one : line.idle[rank]) {
        pieces.emplace_back(one.begin, one.end);
        idle += one.end - one.begin;
        EXPECT_GT(one.end, one.begin);
      }
      EXPECT_NEAR(busy(line.ranks[rank]) + idle, line.end, kTiny) << schedule.name;
      std::sort(pieces.begin(), pieces.end());
      double at = 0;
      for (const auto& [begin, end] : pieces) {
        EXPECT_NEAR(begin, at, kTiny) << schedule.name << " rank " << rank;
        at = end;
      }
    }
  }
}

TEST(Simulate, CausesSayWhoWasWaitedFor) {
  const PipelineTimeline line =
      simulate(make_schedule("1f1b", {2, 2, 1}), ScheduleCosts{.f = 1, .b = 1, .w = 1, .c = .25});
  // Rank 1: 1.25 of warm-up behind 0F0, then F BW F BW; rank 0 waits for the first gradient.
  ASSERT_FALSE(line.idle[1].empty());
  EXPECT_EQ(line.idle[1][0].cause, IdleCause::kWarmUp);
  EXPECT_NEAR(line.idle[1][0].end, 1.25, kTiny);
  EXPECT_EQ(line.idle[1][0].waits_for, forward(0, 0));
  EXPECT_EQ(line.idle[1].back().cause, IdleCause::kDrain);
  ASSERT_GE(line.idle[0].size(), 2u);
  EXPECT_EQ(line.idle[0][0].cause, IdleCause::kDependency);
  EXPECT_EQ(line.idle[0][0].waits_for, backward(1, 0));
  EXPECT_EQ(line.idle[0][0].waits_for_rank, 1);
  EXPECT_EQ(line.idle[0][1].cause, IdleCause::kMessage) << "the last quarter is the gradient's way";
  EXPECT_NEAR(line.idle[0][1].end - line.idle[0][1].begin, 0.25, kTiny);
}

TEST(Simulate, TheCriticalPathHasNoSlackAndNoHole) {
  for (const Schedule& schedule : all_schedules({1, 3, 4}, {3, 8, 16}, kCosts)) {
    const PipelineTimeline line = simulate(schedule, kCosts);
    std::vector<TimedAction> path;
    for (const auto& rank : line.ranks)
      for (const TimedAction& timed : rank)
        if (timed.critical) path.push_back(timed);
    std::sort(path.begin(), path.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    ASSERT_FALSE(path.empty());
    EXPECT_NEAR(path.front().begin, 0, kTiny) << schedule.name;
    EXPECT_NEAR(path.back().end, line.end, kTiny) << schedule.name;
    for (size_t i = 0; i < path.size(); ++i) {
      EXPECT_NEAR(path[i].slack, 0, kTiny) << schedule.name << " " << to_text(path[i].action);
      if (i == 0) continue;
      const double gap = path[i].begin - path[i - 1].end;
      EXPECT_TRUE(std::abs(gap) < kTiny || std::abs(gap - kCosts.c) < kTiny) << schedule.name << ": " << gap;
    }
  }
}

TEST(Simulate, SlackIsExactlyWhatAnActionMayLose) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-2p", "v-half", "dualpipe-v"}) {
    const Schedule schedule = make_schedule(name, {3, 7, 1}, kCosts);
    const PipelineTimeline line = simulate(schedule, kCosts);
    const ScheduleOracle oracle(schedule);
    std::vector<double> durations;
    for (const auto& rank : line.ranks)
      for (const TimedAction& timed : rank) durations.push_back(timed.end - timed.begin);
    EXPECT_NEAR(oracle.end(durations, kCosts.c), line.end, kTiny) << name;
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      for (int i = 0; i < static_cast<int>(schedule.ranks[static_cast<size_t>(rank)].size()); ++i) {
        const double slack = line.ranks[static_cast<size_t>(rank)][static_cast<size_t>(i)].slack;
        const int node = oracle.node(rank, i);
        EXPECT_GE(slack, -kTiny);
        EXPECT_NEAR(oracle.end(durations, kCosts.c, node, slack), line.end, kTiny) << name << rank << " " << i;
        EXPECT_NEAR(oracle.end(durations, kCosts.c, node, slack + 0.5), line.end + 0.5, kTiny) << name;
      }
    }
  }
}

TEST(Simulate, StagesMayCostDifferently) {
  const Schedule schedule = make_schedule("1f1b", {2, 4, 1});
  // Stage 1 three times as slow: it sets the pace, and rank 0 only adds the first forward and the last backward.
  const PipelineTimeline line = simulate(schedule, PipelineTiming{.stages = {{1, 1, 1}, {3, 3, 3}}});
  EXPECT_NEAR(line.end, 1 + 4 * 9 + 2, kTiny);
  EXPECT_NEAR(line.ideal, 36, kTiny);
}

TEST(Simulate, OverlappedPairsTakeTheirFactor) {
  const Schedule schedule = make_schedule("dualpipe-v", {2, 8, 1});
  ScheduleCosts faster;
  faster.pair_factor = 0.75;
  const PipelineTimeline slow = simulate(schedule, ScheduleCosts{}), fast = simulate(schedule, faster);
  EXPECT_LT(fast.makespan, slow.makespan);
  EXPECT_NEAR(fast.ideal, slow.ideal, kTiny) << "the work without overlap stays what it is";
}

TEST(Simulate, LargePipelinesMatchTheirClosedForms) {
  EXPECT_NEAR(simulate(make_schedule("1f1b", {64, 1024, 1}), ScheduleCosts{}).makespan, 3 * (1024 + 63), kTiny);
  EXPECT_NEAR(simulate(make_schedule("zb-h1", {64, 1024, 1}), ScheduleCosts{}).makespan, 3 * 1024 + 63, kTiny);
  EXPECT_NEAR(simulate(make_schedule("zb-v", {64, 1024, 1}), ScheduleCosts{}).makespan, 3 * 1024, kTiny);
}

TEST(Simulate, AStuckScheduleNamesWhereTheRanksStand) {
  Schedule schedule = make_schedule("gpipe", {2, 1, 1});
  std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);
  try {
    simulate(schedule, ScheduleCosts{});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 0 at 0BW0, rank 1 at 1BW0"));
  }
}

}  // namespace
}  // namespace ranklab
