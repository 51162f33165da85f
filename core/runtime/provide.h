// Makes components from functions: a program with its own model, data or optimizer passes a function and keeps the rest
// of default_components(). For more (validation data, another kind of accumulation) derive from components.h directly.
// The functions are called on every rank's thread, so they must not modify shared state.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/layered_model.h"
#include "core/optim/optimizer.h"
#include "core/runtime/components.h"

namespace ranklab {

using MakeModel = std::function<std::unique_ptr<CausalLm>(RankContext&, const RunPlan&)>;
std::shared_ptr<ModelProvider> provide_model(MakeModel make);

// A model that is a stack of layers. It can be split into pipeline stages, used with ZeRO stage 3, and recomputed.
using MakeLayers = std::function<std::unique_ptr<LayerStack>(const StackContext&, const RunPlan&)>;
std::shared_ptr<ModelProvider> provide_layers(MakeLayers make);
// The options that the plan requires of a stack on this rank.
LayeredOptions layered_options(const RankContext& ctx, const RunPlan& plan);

// Returns the batch of (step, microbatch) on this rank; it must be equal on every rank of a model-parallel group. No
// validation.
using MakeBatch = std::function<Batch(const RankContext&, const RunPlan&, int64_t step, int64_t microbatch)>;
std::shared_ptr<DataProvider> provide_data(std::string description, MakeBatch make);
// The same with validation, whose batches are requested by their number in place of the step.
std::shared_ptr<DataProvider> provide_data(std::string description, MakeBatch train, MakeBatch validation);

// Wraps the optimizer's update: gradients are summed over microbatches and, in overlapped buckets, over dp, and clipped
// by the global norm.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<Parameter*>, const RunPlan&)>;
std::shared_ptr<OptimizerRuntime> provide_optimizer(MakeOptimizer make);
// The plan's optimizer (core/optim/optimizer_list.h, with its dtypes), for callers that wrap it.
std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter*> parameters, const RunPlan& plan);

}  // namespace ranklab
