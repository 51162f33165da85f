// Lays out a rank's events in rows: all at once, or one by one as a live trace grows. Both give the same rows for
// events in time order. Cost: O(n log n) at once; an event that arrives in order costs O(log n). Thread rule: pure.
#pragma once
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// Recomputes rows, instants, counters and several_stages of `rows`.
void lay_out_rank(const RankTrace& trace, TraceClock clock, RankRows& rows);
// Inserts event `index` of the trace into the rows.
void insert_event(const RankTrace& trace, TraceClock clock, uint32_t index, RankRows& rows);

}  // namespace ranklab::viz
