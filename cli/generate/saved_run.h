// Runs a saved model on the ranks of a layout, without gradients or an optimizer, for `generate` and `eval`. Thread
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

// Sets the model settings to those of a checkpoint or Hugging Face folder; flags may still change those that leave it
// the same model, such as the sequence length. RETURNS: null if `load` is empty. Call before the settings are read.
// Throws kIo, kBadFile, and kInvalidArgument naming the flags of another model.
std::unique_ptr<SavedModel> take_saved_model(ConfigOptions& options, const std::string& load, ModelUse use);
// The model's preset; for a saved model, which may be no preset, its number of parameters.
std::string run_model_text(const TrainConfig& config);
// The settings' plan and its world, with as many ranks as the layout needs: several replicas only if the experts need
// them, or if --dp requests them. `check` receives the plan before any rank is created. Throws kEnvironment if the
// weights of all simulated ranks (and whatever else training holds) do not fit this machine.
struct ReadyRun {
  RunPlan plan;
  std::shared_ptr<World> world;
};
ReadyRun ready_run(ConfigOptions& options, TrainConfig config, const std::function<void(const RunPlan&)>& check);
// Creates the model on every rank, with the saved weights or (if null) those drawn from the seed, and calls `use` with
// it.
void run_saved_model(const RunPlan& plan, const std::shared_ptr<World>& world, const SavedModel* saved,
                     const std::function<void(StepContext&)>& use);

}  // namespace ranklab
