// When a rank's compute stream was stalled, from its own events. On the virtual clock this is exact: a wait that lasted
// exposed + peer_wait ended with its call. On the wall clock, and where no call has a posting time, only the time
// outside compute spans is known. Cost: O(n log n). Thread rule: pure.
#pragma once
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct Stall {
  int64_t begin_ns = 0;
  int64_t transfer_ns = 0;  // until then for a peer, from then for bytes
  int64_t end_ns = 0;
  uint32_t event = 0;
};

// Whether waits are recorded: virtual clock, and a call with its posting time or no peer to wait for.
bool records_stalls(const RankTrace& trace, TraceClock clock);
// Recorded stalls of the window's events, sorted by time and disjoint.
std::vector<Stall> recorded_stalls(const RankTrace& trace, const Window& window);
// Without records: each part of a gap between compute spans that a call covers is attributed to it, within `range`.
std::vector<Stall> apparent_stalls(const RankTrace& trace, TraceClock clock, const Window& window, TimeRange range);

// Union of the compute spans of the window, clipped to `range`, by time.
std::vector<TimeRange> compute_spans(const RankTrace& trace, TraceClock clock, const Window& window, TimeRange range);

// The compute span that a rank had just ended, or was in, at a time; nothing when there was none.
std::optional<EventRef> work_before(const TraceStore& store, size_t rank_index, int64_t time_ns);

}  // namespace ranklab::viz
