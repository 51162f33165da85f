#include "core/sim/virtual_clock.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

TEST(VirtualClock, SplitsAGapIntoExposedTransferAndPeerWait) {
  VirtualClock clock;
  clock.advance(100);
  const WaitSplit split = clock.wait_until(250, 60, Axis::kTp);
  EXPECT_EQ(split.exposed_ns, 60);
  EXPECT_EQ(split.peer_wait_ns, 90);
  EXPECT_EQ(clock.now_ns(), 250);
  EXPECT_EQ(clock.compute_ns(), 100);
  EXPECT_EQ(clock.exposed_ns(Axis::kTp), 60);
  EXPECT_EQ(clock.exposed_ns(Axis::kDp), 0);
  EXPECT_EQ(clock.peer_wait_ns(), 90);
}

TEST(VirtualClock, AHiddenTransferCostsNothing) {
  VirtualClock clock;
  clock.advance(500);
  EXPECT_EQ(clock.wait_until(500, 400, Axis::kDp).exposed_ns, 0);
  EXPECT_EQ(clock.wait_until(100, 400, Axis::kDp).exposed_ns, 0);
  EXPECT_EQ(clock.now_ns(), 500);
}

TEST(VirtualClock, TheClockIsTheSumOfItsParts) {
  VirtualClock clock;
  clock.advance(7);
  clock.wait_until(20, 5, Axis::kTp);
  clock.advance(3);
  clock.wait_until(40, 100, Axis::kDp);
  EXPECT_EQ(clock.exposed_total_ns(), 5 + 17);
  EXPECT_EQ(clock.now_ns(), clock.compute_ns() + clock.exposed_total_ns() + clock.peer_wait_ns());
}

}  // namespace
}  // namespace ranklab
