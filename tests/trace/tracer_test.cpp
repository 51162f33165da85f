#include "core/trace/tracer.h"

#include <gtest/gtest.h>

#include "tests/trace/sample_trace.h"

namespace ranklab {
namespace {

TEST(Tracer, CountsWhatTheRingCannotHold) {
  Tracer tracer(2, "dp2", 3);
  for (int i = 0; i < 10; ++i) tracer.record(trace_samples::compute(tracer, "F", i, i + 1));
  EXPECT_EQ(tracer.trace().events.size(), 3u);
  EXPECT_EQ(tracer.trace().dropped, 7);
  EXPECT_EQ(tracer.trace().events.back().virtual_begin_ns, 2);
}

TEST(Tracer, FillsStepAndMicrobatchUnlessGiven) {
  Tracer tracer(0, "");
  tracer.set_step(5);
  tracer.set_microbatch(2);
  Event event = trace_samples::compute(tracer, "F", 0, 1);
  tracer.record(event);
  event.step = 1;
  event.microbatch = 0;
  tracer.record(event);
  EXPECT_EQ(tracer.trace().events[0].step, 5);
  EXPECT_EQ(tracer.trace().events[0].microbatch, 2);
  EXPECT_EQ(tracer.trace().events[1].step, 1);
  EXPECT_EQ(tracer.trace().events[1].microbatch, 0);
}

// Code that recorded before continues with the indices of its names.
TEST(Tracer, EventsAreTakenPieceByPiece) {
  Tracer tracer(2, "dp2", 3);
  tracer.set_group(Axis::kDp, {0, 2});
  for (int i = 0; i < 4; ++i) tracer.record(trace_samples::compute(tracer, "F", i, i + 1), {1.0 * i});
  const RankTrace first = tracer.take_events();
  tracer.record(trace_samples::compute(tracer, "B", 9, 10), {7});
  const RankTrace second = tracer.take_events();
  EXPECT_EQ(first.events.size(), 3u);
  EXPECT_EQ(first.dropped, 1);
  EXPECT_EQ(second.events.size(), 1u);
  EXPECT_EQ(second.dropped, 0);
  EXPECT_EQ(second.names, (std::vector<std::string>{"F", "B"}));
  EXPECT_EQ(second.names[second.events[0].name], "B");
  EXPECT_EQ(second.arrays.at(second.events[0].array - 1), std::vector<double>{7});
  EXPECT_EQ(second.groups, first.groups);
  EXPECT_EQ(second.global_rank, 2);
}

TEST(Tracer, InternsEachTextOnce) {
  Tracer tracer(0, "");
  EXPECT_EQ(tracer.intern("a"), 0u);
  EXPECT_EQ(tracer.intern("b"), 1u);
  EXPECT_EQ(tracer.intern("a"), 0u);
  EXPECT_EQ(tracer.trace().names, (std::vector<std::string>{"a", "b"}));
}

TEST(Tracer, ADisabledTracerRecordsNothing) {
  Tracer tracer(0, "");
  tracer.set_enabled(false);
  tracer.record(Event{});
  EXPECT_TRUE(tracer.trace().events.empty());
  EXPECT_EQ(tracer.trace().dropped, 0);
}

TEST(Tracer, TakeLeavesItEmptyAndUsable) {
  Tracer tracer(1, "dp1");
  tracer.set_group(Axis::kDp, {0, 1});
  tracer.record(trace_samples::compute(tracer, "F", 0, 1));
  EXPECT_EQ(tracer.take().events.size(), 1u);
  EXPECT_TRUE(tracer.trace().events.empty());
  EXPECT_EQ(tracer.trace().label, "dp1");
  EXPECT_EQ(tracer.trace().groups.size(), 1u);
  EXPECT_EQ(tracer.intern("F"), 0u);
  EXPECT_EQ(tracer.trace().names.size(), 1u);
}

TEST(Tracer, WallTimeRunsForward) {
  const int64_t first = wall_now_ns();
  EXPECT_GE(first, 0);
  EXPECT_GE(wall_now_ns(), first);
}

}  // namespace
}  // namespace ranklab
