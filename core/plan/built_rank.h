// Ranks of a run as they are before its first step, made on shapes: their model and optimizer, for whoever asks what
// they hold. Nothing is computed and no memory is taken. Thread rule: as record_step().
#pragma once
#include <functional>
#include <vector>

#include "core/plan/record_step.h"

namespace ranklab {

struct StepContext;  // core/runtime/components.h

// In that world, without files; whether tokens are counted beforehand is as with their own data.
RuntimeComponents on_shapes(const RuntimeComponents& parts, std::shared_ptr<World> world);

// `look` is called on the threads of the world's ranks.
void build_ranks(const RunPlan& plan, RuntimeComponents parts, const std::function<void(StepContext&)>& look);
// One rank, of the default parts.
void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look);

}  // namespace ranklab
