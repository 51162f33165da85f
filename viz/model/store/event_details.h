// The contents of an event for display: a list of values, each with its source. Cost: O(members of its call). Thread
// rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// `source` is the origin of a number: "measured" (a clock or a count of the run), "model" (virtual clock, cost model),
// or "" for facts.
struct Detail {
  std::string key;
  std::string value;
  std::string source;
};

// Every field that applies, in reading order.
std::vector<Detail> event_details(const TraceStore& store, EventRef ref);

}  // namespace ranklab::viz
