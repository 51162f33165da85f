#include "core/trace/lanes.h"

#include <algorithm>
#include <set>

#include "core/base/vocabulary.h"

namespace ranklab {
namespace {

constexpr int kPhaseLane = 0;
constexpr int kComputeLane = 1;
constexpr int kFirstAxisLane = 2;
constexpr int kSubLanes = 1000;  // lane id = base x kSubLanes + sub-lane

int base_lane(const Event& event) {
  if (event.kind == EventKind::kCollective) return kFirstAxisLane + static_cast<int>(event.axis);
  // Modules and kernels are inside an action, or else inside a phase, such as the optimizer.
  const bool detail =
      event.kind == EventKind::kModule || event.kind == EventKind::kAttention || event.kind == EventKind::kKernel;
  return event.kind == EventKind::kCompute || (detail && event.microbatch >= 0) ? kComputeLane : kPhaseLane;
}

}  // namespace

// The open slices of one sub-lane, outermost first.
class LaneAssigner::SubLane {
 public:
  bool accepts(int64_t begin, int64_t end, bool nesting) {
    // A slice that begins earlier belongs to an earlier piece, whose enclosing slices are no longer known.
    if (begin < latest_begin_) return false;
    while (!open_.empty() && open_.back() <= begin) open_.pop_back();
    if (open_.empty()) return true;
    return nesting && end <= open_.back();
  }
  void add(int64_t begin, int64_t end) {
    latest_begin_ = begin;
    open_.push_back(end);
  }

 private:
  int64_t latest_begin_ = kNoTime;
  std::vector<int64_t> open_;
};

LaneAssigner::LaneAssigner(TraceClock clock) : clock_(clock) {}
LaneAssigner::~LaneAssigner() = default;
LaneAssigner::LaneAssigner(LaneAssigner&&) noexcept = default;
LaneAssigner& LaneAssigner::operator=(LaneAssigner&&) noexcept = default;

LaneMap LaneAssigner::assign(const std::vector<Event>& events) {
  std::vector<size_t> order;
  for (size_t i = 0; i < events.size(); ++i) {
    if (is_slice(events[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return precedes_in_layout(events[a], a, events[b], b, clock_); });
  LaneMap map;
  map.lane_of_event.assign(events.size(), 0);
  std::set<int> used = {0};
  for (const size_t index : order) {
    const Event& event = events[index];
    const int base = base_lane(event);
    const int64_t begin = begin_ns(event, clock_), end = end_ns(event, clock_);
    std::vector<SubLane>& subs = sub_lanes_[base];
    size_t sub = 0;
    while (sub < subs.size() && !subs[sub].accepts(begin, end, event.kind != EventKind::kCollective)) ++sub;
    if (sub == subs.size()) subs.emplace_back();
    subs[sub].add(begin, end);
    map.lane_of_event[index] = base * kSubLanes + static_cast<int>(sub);
    used.insert(map.lane_of_event[index]);
  }
  map.lanes.assign(used.begin(), used.end());
  return map;
}

LaneMap assign_lanes(const std::vector<Event>& events, TraceClock clock) { return LaneAssigner(clock).assign(events); }

int first_lane(const Event& event) { return base_lane(event) * kSubLanes; }

std::string lane_name(int lane) {
  // Thousands of concurrent slices (which our traces never have) would overflow into the next axis; the last axis is
  // clamped.
  const int base = std::min(lane / kSubLanes, kFirstAxisLane + static_cast<int>(Axis::kCount) - 1);
  std::string text = base == kPhaseLane     ? "phase"
                     : base == kComputeLane ? "compute"
                                            : std::string(name(static_cast<Axis>(base - kFirstAxisLane)));
  if (lane % kSubLanes > 0) text += " #" + std::to_string(lane % kSubLanes + 1);
  return text;
}

}  // namespace ranklab
