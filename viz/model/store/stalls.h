// When a rank's compute stream was stalled, from its own events. On the virtual clock this is exact: a wait that lasted
// exposed + peer_wait ended with its call. On the wall clock, and if no call has a posting time, only the time outside
// compute spans is known. Cost: O(n log n). Thread rule: pure.
#pragma once
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct Stall {
  int64_t begin_ns = 0;
  int64_t transfer_ns = 0;  // before this time it waits for a peer, after it for bytes
  int64_t end_ns = 0;
  uint32_t event = 0;
};

// Whether waits are recorded: on the virtual clock, if some call has a posting time, or there is no peer to wait for.
bool records_stalls(const RankTrace& trace, TraceClock clock);
// Recorded stalls of the window's events, sorted by time and disjoint.
std::vector<Stall> recorded_stalls(const RankTrace& trace, const Window& window);
// If waits are not recorded: every part of a gap between compute spans, within `range`, that a call covers is
// attributed to that call.
std::vector<Stall> apparent_stalls(const RankTrace& trace, TraceClock clock, const Window& window, TimeRange range);

// The union of the window's compute spans, clipped to `range` and sorted by time.
std::vector<TimeRange> compute_spans(const RankTrace& trace, TraceClock clock, const Window& window, TimeRange range);

// The compute span that a rank was in at a time; else the phase that has begun since the last one (the optimizer), or
// the compute span that had ended last; nothing if there was none.
std::optional<EventRef> work_before(const TraceStore& store, size_t rank_index, int64_t time_ns);

}  // namespace ranklab::viz
