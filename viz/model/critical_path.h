// The longest chain of work and transfers from the start of a window to its end: what would have to be faster for the
// whole to be faster. Followed backwards from the rank that ends last: along its work to where it was last stalled,
// over the transfer it waited for to the member that posted last, and on from there. The segments touch, so their
// lengths add up to the makespan exactly. Slack and what-if come from the same events as a graph that is timed again.
//   Cost: O(n log n). Thread rule: pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "viz/model/trace_store.h"

namespace ranklab::viz {

struct PathSegment {
  enum class Kind : uint8_t {
    kWork,      // on the rank's compute stream
    kTransfer,  // bytes on a link
    kUnknown,   // nothing recorded explains the time (a lost event, another program's trace)
  };
  Kind kind = Kind::kWork;
  size_t rank_index = 0;
  TimeRange range;
  std::vector<EventRef> events;  // the compute spans it runs through, or the call
};

struct CriticalPath {
  TimeRange range;
  std::vector<PathSegment> segments;  // from the start; each begins where the one before ends
  // [rank][event]: how much later a slice could end without a longer whole; kNoTime for what is no slice, or outside
  // the window, or not known (wall clock).
  std::vector<std::vector<int64_t>> slack_ns;

  int64_t length_ns() const;  // == range.length_ns()
  bool on_path(EventRef ref) const;
  std::vector<std::vector<bool>> path_events;  // [rank][event]
};

CriticalPath find_critical_path(const TraceStore& store, const Window& window);

// "What if these were free": the makespan when the chosen events take no time, all else as it was.
struct WhatIf {
  std::string what;             // "F", "all_reduce tp"
  int64_t on_path_ns = 0;       // what it has of the critical path
  int64_t makespan_ns = 0;      // without it
  int64_t gain_ns = 0;          // makespan now - then
  std::string next_bottleneck;  // what has most of the path then
};
// REQUIRES: the virtual clock.
WhatIf what_if_free(const TraceStore& store, const std::string& what,
                    const std::function<bool(const RankTrace& trace, const Event& event)>& free);
// One row for each compute name and each (verb, axis), largest gain first.
std::vector<WhatIf> what_if_table(const TraceStore& store);

}  // namespace ranklab::viz
