// Trains a few steps and keeps every tensor that can be compared: the batch, the weights that a step uses, inputs and
// outputs of modules and their gradients, gradients of parameters before and after their reduction, loss, gradient
// norm, optimizer states. Memory: all of these tensors, of all ranks and steps. Thread rule: main thread.
#pragma once
#include <functional>
#include <memory>

#include "core/comm/world.h"
#include "core/parity/parity_record.h"
#include "core/runtime/components.h"

namespace ranklab {

using MakeParityParts = std::function<RuntimeComponents(std::shared_ptr<World>, const RunPlan&)>;

struct ParityRunOptions {
  int64_t steps = 1;  // at most this many: the settings' train_iters end a run too
  // Above 0: every weight is changed by one unit in the last place of the compute dtype, up or down at random with this
  // seed.
  uint64_t perturb = 0;
  SumOrder order = {};
  MakeParityParts components = {};  // null: the default ones
};

using MakeParityWorld = std::function<std::shared_ptr<World>(const RunPlan&)>;

// If a run fails (with a hang that the match table names, for example), what it recorded until then is kept, with the
// error. Throws kInvalidArgument for an invalid configuration, and kEnvironment if this machine cannot run it.
ParityRecord record_run(const TrainConfig& config, const MakeParityWorld& make_world, const ParityRunOptions& options);

}  // namespace ranklab
