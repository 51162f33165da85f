// Ranks of a run in their state before the first step, built on shapes: model and optimizer, for callers that need to
// know what they hold. Nothing is computed and no memory is allocated. Thread rule: as record_step().
#pragma once
#include <functional>
#include <vector>

#include "core/plan/record_step.h"

namespace ranklab {

struct StepContext;  // core/runtime/components.h

// The same parts in that world, without files; global token counts are known beforehand as with their own data.
RuntimeComponents on_shapes(const RuntimeComponents& parts, std::shared_ptr<World> world);

// `look` is called on the threads of the world's ranks.
void build_ranks(const RunPlan& plan, RuntimeComponents parts, const std::function<void(StepContext&)>& look);
// Builds one rank, with the default parts.
void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look);

}  // namespace ranklab
