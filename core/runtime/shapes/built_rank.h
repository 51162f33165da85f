// A run's parts in a world of shapes, where batches have the plan's shape and no token values; and ranks of such a
// world in their state before the first step (model and optimizer), for callers that need to know what they hold.
// Nothing is computed and no memory is allocated. Thread rule: the thread that would train.
#pragma once
#include <functional>
#include <memory>

#include "core/config/train_config.h"
#include "core/runtime/shapes/shape_world.h"

namespace ranklab {

struct RuntimeComponents;  // core/runtime/components.h
struct StepContext;

// The plan for such a world: simulated, without files, validation, samples and traces, and with the final batch size.
RunPlan plan_on_shapes(RunPlan plan);

// Does not read files. Global token counts are known beforehand exactly if the parts' own data (whose tokens are not
// read) would know them; without data, they are known.
RuntimeComponents on_shapes(RuntimeComponents parts, std::shared_ptr<World> world);

// REQUIRES: parts from on_shapes(). `look` is called on the threads of the world's ranks.
void build_ranks(const RunPlan& plan, RuntimeComponents parts, const std::function<void(StepContext&)>& look);
// Builds one rank with the default parts.
void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look);

}  // namespace ranklab
