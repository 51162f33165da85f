// What a selected event waited for and what waited for it, as arrows between events: from the action of another rank
// whose message an action used, between the two ends of a message, and between a collective's last member and the
// others. Cost: O(events of the step). Thread rule: pure.
#pragma once
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct Dependency {
  EventRef from, to;
  bool incoming = false;  // `to` is the selected event
};

std::vector<Dependency> dependencies(const TraceStore& store, EventRef chosen);

}  // namespace ranklab::viz
