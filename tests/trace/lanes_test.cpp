#include "core/trace/lanes.h"

#include <gtest/gtest.h>

#include <random>

namespace ranklab {
namespace {

Event span(EventKind kind, int64_t begin, int64_t end, Axis axis = Axis::kDp) {
  Event event;
  event.kind = kind;
  event.axis = axis;
  event.virtual_begin_ns = begin;
  event.virtual_end_ns = end;
  return event;
}

std::vector<std::string> names(const std::vector<Event>& events) {
  std::vector<std::string> out;
  for (const int lane : assign_lanes(events, TraceClock::kVirtual).lane_of_event) out.push_back(lane_name(lane));
  return out;
}

TEST(Lanes, KindsAndAxesHaveLanesOfTheirOwn) {
  EXPECT_EQ(names({span(EventKind::kPhase, 0, 9), span(EventKind::kCompute, 0, 5), span(EventKind::kCollective, 5, 6),
                   span(EventKind::kCollective, 5, 6, Axis::kTp)}),
            (std::vector<std::string>{"phase", "compute", "dp", "tp"}));
}

TEST(Lanes, OverlappingTransfersTakeFurtherLanes) {
  EXPECT_EQ(names({span(EventKind::kCollective, 0, 10), span(EventKind::kCollective, 5, 15),
                   span(EventKind::kCollective, 10, 20), span(EventKind::kCollective, 11, 12)}),
            (std::vector<std::string>{"dp", "dp #2", "dp", "dp #3"}));
}

TEST(Lanes, PiecesOfATraceTakeTheLanesOfTheWhole) {
  std::mt19937 random(3);
  std::vector<Event> events;
  for (int64_t begin = 0; begin < 20'000; begin += random() % 40)
    events.push_back(span(random() % 2 == 0 ? EventKind::kCollective : EventKind::kCompute, begin,
                          begin + static_cast<int64_t>(random() % 90)));
  const LaneMap whole = assign_lanes(events, TraceClock::kVirtual);
  LaneAssigner assigner(TraceClock::kVirtual);
  std::vector<int> lanes;
  for (size_t at = 0; at < events.size(); at += 7) {
    const auto end = std::min(at + 7, events.size());
    const LaneMap piece = assigner.assign(
        {events.begin() + static_cast<std::ptrdiff_t>(at), events.begin() + static_cast<std::ptrdiff_t>(end)});
    lanes.insert(lanes.end(), piece.lane_of_event.begin(), piece.lane_of_event.end());
  }
  EXPECT_EQ(lanes, whole.lane_of_event);
}

// What a lane held then is forgotten.
TEST(Lanes, ASliceBeforeThoseOfAnEarlierPieceCrossesNone) {
  LaneAssigner assigner(TraceClock::kVirtual);
  assigner.assign({span(EventKind::kCollective, 0, 10), span(EventKind::kCollective, 20, 30)});
  const LaneMap late = assigner.assign({span(EventKind::kCollective, 5, 15), span(EventKind::kCollective, 30, 40)});
  EXPECT_EQ(lane_name(late.lane_of_event[0]), "dp #2");
  EXPECT_EQ(lane_name(late.lane_of_event[1]), "dp");
}

TEST(Lanes, NestedComputeStaysAndCrossingComputeMoves) {
  EXPECT_EQ(
      names({span(EventKind::kCompute, 2, 4), span(EventKind::kCompute, 0, 10), span(EventKind::kCompute, 8, 12)}),
      (std::vector<std::string>{"compute", "compute", "compute #2"}));
}

TEST(Lanes, AnySlicesNestOnEachLane) {
  std::mt19937 generator(7);
  std::vector<Event> events;
  for (int i = 0; i < 500; ++i) {
    const int64_t begin = generator() % 1000;
    events.push_back(span(i % 2 == 0 ? EventKind::kCompute : EventKind::kCollective, begin, begin + generator() % 50));
  }
  const LaneMap map = assign_lanes(events, TraceClock::kVirtual);
  for (size_t a = 0; a < events.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (map.lane_of_event[a] != map.lane_of_event[b]) continue;
      const Event &x = events[a], &y = events[b];
      const bool apart = x.virtual_end_ns <= y.virtual_begin_ns || y.virtual_end_ns <= x.virtual_begin_ns;
      const bool inside = (x.virtual_begin_ns >= y.virtual_begin_ns && x.virtual_end_ns <= y.virtual_end_ns) ||
                          (y.virtual_begin_ns >= x.virtual_begin_ns && y.virtual_end_ns <= x.virtual_end_ns);
      ASSERT_TRUE(apart || (inside && x.kind == EventKind::kCompute)) << a << " and " << b;
    }
  }
}

}  // namespace
}  // namespace ranklab
