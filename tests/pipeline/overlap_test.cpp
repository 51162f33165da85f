// Schedules whose neighbours run as pairs: as fast as the schedule they come from where a pair takes the time of both
// its parts, so all that a pair saves is a gain.
#include "core/pipeline/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/pipeline/schedules.h"
#include "core/pipeline/simulate.h"
#include "core/pipeline/verify.h"
#include "tests/pipeline/all_schedules.h"

namespace ranklab {
namespace {

Schedule paired(const char* name, int p, int m, int v = 1) {
  return overlap_neighbours(
      make_schedule(name, {.num_ranks = p, .num_microbatches = m, .num_chunks = v, .pairs = true}));
}

double makespan(const Schedule& schedule, double pair_factor = 1) {
  return simulate(schedule, ScheduleCosts{.pair_factor = pair_factor}).makespan;
}

TEST(OverlapNeighbours, OneFOneBKeepsItsBubble) {
  for (const int p : {1, 2, 4, 8, 16}) {
    for (const int m : {2 * p, 4 * p, 4 * p + 1}) {
      const double alone = makespan(make_schedule("1f1b", {p, m, 1}));
      for (const char* name : {"1f1b", "interleaved-1f1b"}) {
        const Schedule schedule = paired(name, p, m);
        EXPECT_NEAR(makespan(schedule), alone, kTiny) << name << " p " << p << " m " << m;
        // The first rank pairs all but its first 2p - 1 forwards, the last all but one.
        const auto pairs = [&](int rank) {
          const std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
          return std::ranges::count(actions, ActionKind::kFBW, &Action::kind);
        };
        EXPECT_EQ(pairs(0), m - (2 * p - 1)) << name << " p " << p << " m " << m;
        EXPECT_EQ(pairs(p - 1), m - 1) << name << " p " << p << " m " << m;
      }
    }
  }
}

TEST(OverlapNeighbours, EveryPairOfOneFOneBGainsTime) {
  // All pairs of the last rank are on the longest chain, and no other action runs between two of them.
  const Schedule schedule = paired("1f1b", 4, 32);
  EXPECT_NEAR(makespan(schedule) - makespan(schedule, 0.75), 31 * 3 * 0.25, kTiny);
}

TEST(OverlapNeighbours, ThePriceIsTwiceTheWarmUp) {
  const auto peaks = [](const Schedule& schedule) {
    std::vector<double> out;
    for (const StageMemory& memory : verify_schedule(schedule).memory) out.push_back(memory.peak_activations);
    return out;
  };
  EXPECT_THAT(peaks(paired("1f1b", 4, 16)), testing::ElementsAre(8, 6, 4, 2));
  EXPECT_THAT(peaks(paired("1f1b", 4, 3)), testing::ElementsAre(3, 3, 3, 2));
}

TEST(OverlapNeighbours, SchedulesWithoutNeighboursAreRefused) {
  for (const char* name : {"gpipe", "zb-h1"})
    EXPECT_THROW(overlap_neighbours(make_schedule(name, {4, 8, 1})), Error) << name;
  EXPECT_THROW(paired("1f1b", 2, 1), Error);
}

}  // namespace
}  // namespace ranklab
