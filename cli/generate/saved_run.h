// A saved model on the ranks of a layout, without gradients or an optimizer: what `generate` and `eval` run. Thread
// rule: main thread.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "cli/config/config_options.h"
#include "cli/model/saved_model.h"
#include "core/comm/world.h"
#include "core/runtime/components.h"

namespace ranklab {

// The model of a checkpoint or a Hugging Face folder becomes the settings'; flags may still change some, such as its
// length. Null where `load` is empty. Call before the settings are read. Throws kIo, kBadFile, kInvalidArgument.
std::unique_ptr<SavedModel> take_saved_model(ConfigOptions& options, const std::string& load);
// The model's preset, or of a saved model, which was none of them perhaps, how many parameters it has.
std::string run_model_text(const TrainConfig& config);
// The settings' plan and its world, of as many ranks as the layout asks for: replicas only for their experts, unless
// --dp asks for some. `check` sees the plan before any rank is made. Throws kEnvironment where the weights of all
// simulated ranks (and what training holds besides) do not fit this machine.
struct ReadyRun {
  RunPlan plan;
  std::shared_ptr<World> world;
};
ReadyRun ready_run(ConfigOptions& options, TrainConfig config, const std::function<void(const RunPlan&)>& check);
// Makes the model on every rank, with the saved weights or (null) the seed's, and calls `use` with it.
void run_saved_model(const RunPlan& plan, const std::shared_ptr<World>& world, const SavedModel* saved,
                     const std::function<void(StepContext&)>& use);

}  // namespace ranklab
