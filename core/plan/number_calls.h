// Sequence numbers for the calls of repeated passes (replay.h), which initially have the numbers of the calls that they
// repeat. Thread rule: pure.
#pragma once
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

// Renumbers the calls of each rank's groups in the order in which they began on the link. Groups shared by several of
// these ranks keep their numbers, because all their calls were really made.
void number_calls(std::vector<RankTrace>& traces);

}  // namespace ranklab
