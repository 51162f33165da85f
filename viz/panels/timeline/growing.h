// What the ranks of a live run are doing now. An event is recorded only when it ends; until then the stepper knows
// more. Cost: O(ranks). Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/live/stepper_state.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct GrowingBlock {
  size_t rank_index = 0;
  TimeRange range;  // from the end of the rank's last event to the run's current time; may be empty
  RankActivity activity = RankActivity::kRunning;
  std::string words;  // "waits for r4", "parked at F mb 3"
};

// Blocks of the ranks that have not ended, in virtual time; in wall time there are none.
std::vector<GrowingBlock> growing_blocks(const TraceStore& store, const StepperState& state);

}  // namespace ranklab::viz
