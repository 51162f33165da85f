// Components from functions: a program with a model, data or optimizer of its own hands in what it computes, and keeps
// the rest of default_components(). For more (validation data, another accumulation) derive from components.h itself.
// The functions are called on every rank's thread, so they must not share what they change.
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

// A model that is a stack of layers: pipeline stages, ZeRO stage 3 and recomputation come with it.
using MakeLayers = std::function<std::unique_ptr<LayerStack>(const StackPlace&, const RunPlan&)>;
std::shared_ptr<ModelProvider> provide_layers(MakeLayers make);
// What the plan asks of a stack on this rank.
LayeredOptions layered_options(const RankContext& ctx, const RunPlan& plan);

// The batch of (step, microbatch) on this rank; the same on every rank of a model-parallel group. No validation.
using MakeBatch = std::function<Batch(const RankContext&, const RunPlan&, int64_t step, int64_t microbatch)>;
std::shared_ptr<DataProvider> provide_data(std::string description, MakeBatch make);

// Around the update: gradients summed over microbatches and over dp in overlapped buckets, clipped by the global norm.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<Parameter*>, const RunPlan&)>;
std::shared_ptr<OptimizerRuntime> provide_optimizer(MakeOptimizer make);
// The update that the plan asks for (AdamW or SGD, in its types), for whoever wraps it.
std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter*> parameters, const RunPlan& plan);

}  // namespace ranklab
