// The step in which a run fails, for its trace: what each rank had recorded of that step when the error occurred,
// closed by a mark (failed_event.h). A user who looks for a hang or a mismatch sees how far each rank came. Ranks that
// are processes send it to rank 0, if their world can still do that (World::leave_behind()). Thread rule:
// leave_broken_step() on the rank's thread.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/comm/world.h"
#include "core/runtime/hooks.h"
#include "core/runtime/record/trace_gather.h"

namespace ranklab {

void leave_broken_step(RankContext& rank, TraceCollector& collector) noexcept;
// Runs the ranks. If they fail, passes what they left to the hooks, then rethrows the error.
void run_keeping_broken_step(World& world, const std::function<void(Endpoint&)>& rank, TraceCollector& collector,
                             const std::vector<std::shared_ptr<Hook>>& hooks);

}  // namespace ranklab
