// What the ranks of a live run are doing now: an event is recorded when it ends, so until then the stepper knows more.
// Cost: O(ranks). Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/live/stepper_state.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct GrowingBlock {
  size_t rank_index = 0;
  TimeRange range;  // from the end of what it recorded to where the run is; may be empty
  RankActivity activity = RankActivity::kRunning;
  std::string words;  // "waits for r4", "parked at F mb 3"
};

// Blocks of the ranks that have not ended, in virtual time; none in wall time.
std::vector<GrowingBlock> growing_blocks(const TraceStore& store, const StepperState& state);

}  // namespace ranklab::viz
