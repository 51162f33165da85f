// Totals of an area of the timeline: time and count per kind of event, overall and for each rank. Of a slice that is
// only partly inside, that part counts. Cost: O(slices inside). Thread rule: pure.
#pragma once
#include <vector>

#include "viz/model/store/trace_store.h"
#include "viz/panels/parts/view_state.h"

namespace ranklab::viz {

struct AreaRow {
  Paint paint = Paint::kCompute;
  std::string_view name;  // the kind; for other compute spans and phases the event's own name
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
