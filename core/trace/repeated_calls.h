// Numbers for calls that were traced again instead of being made (RepeatableCall in core/comm/call_watch.h), and so
// have the sequence numbers of the calls that they repeat. Cost: O(n log n). Thread rule: pure.
#pragma once
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

// Gives such calls numbers of their own: in each rank's groups, in the order in which they began on the link. Groups
// shared by several of these ranks keep their numbers, because all their calls were really made.
void number_repeated_calls(std::vector<RankTrace>& traces);

}  // namespace ranklab
