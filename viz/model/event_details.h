// What an event holds, as people read it: a list of values, each with its source. Cost: O(members of its call). Thread
// rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/trace_store.h"

namespace ranklab::viz {

// `source` says where a number comes from: "measured" (a clock or a count of the run), "model" (virtual clock, cost
// model), or "" for facts.
struct Detail {
  std::string key;
  std::string value;
  std::string source;
};

// Every field that applies, in reading order.
std::vector<Detail> event_details(const TraceStore& store, EventRef ref);

}  // namespace ranklab::viz
