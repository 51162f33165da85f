// Assigns a lane to each slice: one lane for phases, one for compute with its modules and kernels, one per axis for
// communication, and further lanes ("dp #2") where slices of a lane would overlap, because Chrome's format requires the
// slices of a track to nest. Phases and compute spans may nest; communication slices of a lane never overlap. Cost: O(n
// log n); between pieces of a trace, memory is needed only for slices that are still open. Thread rule: pure; a
// LaneAssigner belongs to one thread.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

// Which of the two clocks is shown: virtual time for simulated runs, wall time for real hardware.
enum class TraceClock : uint8_t { kVirtual, kWall };

inline int64_t begin_ns(const Event& event, TraceClock clock) {
  return clock == TraceClock::kVirtual ? event.virtual_begin_ns : event.wall_begin_ns;
}
inline int64_t end_ns(const Event& event, TraceClock clock) {
  return clock == TraceClock::kVirtual ? event.virtual_end_ns : event.wall_end_ns;
}
// An event with a duration.
inline bool is_slice(const Event& event) {
  return event.kind != EventKind::kInstant && event.kind != EventKind::kCounter;
}

// Which of two slices with the same extent encloses the other: the one with the lower rank.
constexpr int nesting_rank(EventKind kind) {
  if (kind == EventKind::kPhase) return 0;
  if (kind == EventKind::kModule) return 2;
  if (kind == EventKind::kAttention) return 3;
  return kind == EventKind::kKernel ? 4 : 1;
}
// Whether slice `a` (the i-th recorded) comes before `b` (the j-th) in the layout: ordered by begin, with the enclosing
// slice first. Among modules with the same extent, the later one encloses the other, because a parent is recorded after
// its child.
inline bool precedes_in_layout(const Event& a, size_t i, const Event& b, size_t j, TraceClock clock) {
  if (begin_ns(a, clock) != begin_ns(b, clock)) return begin_ns(a, clock) < begin_ns(b, clock);
  if (end_ns(a, clock) != end_ns(b, clock)) return end_ns(a, clock) > end_ns(b, clock);
  if (nesting_rank(a.kind) != nesting_rank(b.kind)) return nesting_rank(a.kind) < nesting_rank(b.kind);
  return a.kind == EventKind::kModule ? i > j : i < j;
}

struct LaneMap {
  std::vector<int> lane_of_event;  // the thread id of each event
  std::vector<int> lanes;          // used thread ids, ascending; instants and counters live on lane 0
};

// Assigns lanes for one rank's trace that comes in pieces, in recording order. A slice in a later piece that begins
// before an already assigned one gets a lane in which it overlaps none.
class LaneAssigner {
 public:
  explicit LaneAssigner(TraceClock clock);
  ~LaneAssigner();
  LaneAssigner(LaneAssigner&&) noexcept;
  LaneAssigner& operator=(LaneAssigner&&) noexcept;

  LaneMap assign(const std::vector<Event>& piece);

 private:
  class SubLane;
  TraceClock clock_;
  std::map<int, std::vector<SubLane>> sub_lanes_;  // by base lane
};

// Assigns lanes for a whole trace.
LaneMap assign_lanes(const std::vector<Event>& events, TraceClock clock);
int first_lane(const Event& event);  // for its kind and axis, before any "#2"
std::string lane_name(int lane);     // "phase", "compute", "tp", "dp #2"

}  // namespace ranklab
