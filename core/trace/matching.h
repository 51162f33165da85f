// Matches events of different ranks that belong together: the two ends of a message, the members of a collective. The
// key is the group (RankTrace::groups) and the sequence number. Ranks that are not in the trace (one file per process)
// are ignored. Cost: O(n). Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

struct EventRef {
  size_t rank_index = 0;  // index into the given traces
  size_t event_index = 0;

  bool operator==(const EventRef&) const = default;
};

// One call of one group as its members recorded it.
struct MatchedCall {
  std::vector<int> group;  // global ranks, in group order; empty when the rank did not record it
  int64_t sequence = -1;
  bool message = false;
  std::vector<EventRef> sides;  // for a message: sender first
};

// Every collective and message of the traces, in order of first appearance. Messages are matched by (pair, tag,
// sequence); an unmatched end becomes a MatchedCall with one side.
std::vector<MatchedCall> match_calls(std::span<const RankTrace> traces);

// The group of an event of this trace, or null when its axis was not recorded.
const std::vector<int>* group_of(const RankTrace& trace, Axis axis);

}  // namespace ranklab
