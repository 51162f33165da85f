// The longest chain of work and transfers from the start of a window to its end: what would have to be faster for the
// whole to be faster. It is followed backwards from the rank that ends last: along that rank's work to its last stall,
// over the transfer it waited for to the member that posted last, and on from there. The segments are contiguous, so
// their lengths add up exactly to the makespan. Slack is computed from the same events as a graph. Cost: O(n log n).
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct PathSegment {
  enum class Kind : uint8_t {
    kWork,      // on the rank's compute stream
    kTransfer,  // bytes on a link
    kUnknown,   // no recorded event explains the time (a lost event, another program's trace)
  };
  Kind kind = Kind::kWork;
  size_t rank_index = 0;
  TimeRange range;
  std::vector<EventRef> events;  // the compute spans of the segment, or its call
};

struct CriticalPath {
  TimeRange range;
  std::vector<PathSegment> segments;  // from the start; each begins where the previous one ends
  // [rank][event]: how much later a slice could end without delaying the end. kNoTime for events that are not slices or
  // are outside the window, or if it is not known (wall clock).
  std::vector<std::vector<int64_t>> slack_ns;

  int64_t length_ns() const;  // == range.length_ns()
  bool on_path(EventRef ref) const;
  std::vector<std::vector<bool>> path_events;  // [rank][event]
};

CriticalPath find_critical_path(const TraceStore& store, const Window& window);

// Consecutive segments of the path on one rank.
struct PathStay {
  size_t rank_index = 0;
  size_t first = 0, last = 0;  // segments [first, last)
  TimeRange range;
  int64_t work_ns = 0, transfer_ns = 0;  // the rest of the time is unexplained
};
std::vector<PathStay> stays_of(const CriticalPath& path);

}  // namespace ranklab::viz
