// What an area of the timeline holds: time and count per kind of event, in total and for each rank. A slice that is
// only partly inside counts with its part. Cost: O(slices inside). Thread rule: pure.
#pragma once
#include <vector>

#include "viz/model/trace_store.h"
#include "viz/panels/view_state.h"

namespace ranklab::viz {

struct AreaRow {
  Paint paint = Paint::kCompute;
  std::string_view name;  // of the kind; of other compute spans and phases the event's own
  int64_t count = 0;
  int64_t total_ns = 0;
  std::vector<int64_t> of_rank_ns;  // [rank - first_rank]
};

struct AreaTotals {
  Area area;
  std::vector<AreaRow> rows;  // largest total first
};

AreaTotals area_totals(const TraceStore& store, const Area& area);

}  // namespace ranklab::viz
