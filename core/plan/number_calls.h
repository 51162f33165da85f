// Sequence numbers for the calls of repeated passes (replay.h), which have those of the calls that they repeat. Thread
// rule: pure.
#pragma once
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

// Numbers the calls of each rank's groups anew, in the order in which they began on the link. Groups that several of
// these ranks share stay as they are: their calls were all made.
void number_calls(std::vector<RankTrace>& traces);

}  // namespace ranklab
