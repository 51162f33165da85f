// "What if these were free": the makespan if the chosen events took no time and everything else were unchanged. The
// trace's dependency graph (event_graph.h) is timed again with other durations. Cost: O(n log n) to build the graph,
// O(n) per question. Thread rule: pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct WhatIf {
  std::string what;             // "F", "all_reduce tp"
  int64_t on_path_ns = 0;       // its share of the critical path
  int64_t makespan_ns = 0;      // without these events
  int64_t gain_ns = 0;          // the makespan now minus the one without these events
  std::string next_bottleneck;  // the largest part of the critical path in that case
};
// REQUIRES: the virtual clock.
WhatIf what_if_free(const TraceStore& store, const std::string& what,
                    const std::function<bool(const RankTrace& trace, const Event& event)>& free);
// One row for each compute name and each (verb, axis), the largest gain first.
std::vector<WhatIf> what_if_table(const TraceStore& store);

}  // namespace ranklab::viz
