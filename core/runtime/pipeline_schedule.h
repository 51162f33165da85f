// Runs any pipeline schedule on real tensors: each rank executes its actions in order (F, B, W, BW, or an overlapped
// pair, as its F and then its BW) and waits only for what an action needs. With one rank and one stage this is plain
// gradient accumulation. Losses and labels are on the last stage, tokens on the first; a stage's activation is held
// from F until W (or BW) is done. Gradients accumulate in the schedule's order, which is that of the microbatches, so a
// pipeline is bitwise equal to one rank with the same microbatches. Cost: one message of [S, B, H] per stage boundary
// between ranks, microbatch and direction. Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

std::unique_ptr<ScheduleStrategy> make_pipeline_schedule(const Schedule& schedule);

}  // namespace ranklab
