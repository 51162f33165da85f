// Runs any pipeline schedule on real tensors (action_runner.h). With one rank and one stage it is plain gradient
// accumulation. Losses and labels live on the last stage, tokens on the first. Gradients accumulate in the order of the
// microbatches, which every schedule keeps, so a pipeline is bitwise equal to one rank with the same microbatches.
// Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

std::unique_ptr<ScheduleStrategy> make_pipeline_schedule(const Schedule& schedule);

}  // namespace ranklab
