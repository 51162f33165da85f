// Trains a few steps and keeps every tensor that can be compared: the batch, the weights that a step uses, inputs and
// outputs of modules and their gradients, gradients of parameters before and after their reduction, loss, gradient
// norm, optimizer states. Memory: all of them, of all ranks and steps. Thread rule: main thread.
#pragma once
#include <functional>
#include <memory>

#include "core/comm/world.h"
#include "core/parity/parity_record.h"
#include "core/runtime/components.h"

namespace ranklab {

using MakeParityParts = std::function<RuntimeComponents(std::shared_ptr<World>, const RunPlan&)>;

struct ParityRunOptions {
  int64_t steps = 1;  // at most: the settings' train_iters end a run too
  // Above 0: every weight is changed by one unit in the last place of the compute dtype, up or down as this seed draws.
  uint64_t perturb = 0;
  SumOrder order = {};
  MakeParityParts components = {};  // null: the default ones
};

using MakeParityWorld = std::function<std::shared_ptr<World>(const RunPlan&)>;

// A run that fails (a hang that the match table names, for example) is kept as far as it went, with the reason. Throws
// kInvalidArgument for an invalid configuration.
ParityRecord record_run(const TrainConfig& config, const MakeParityWorld& make_world, const ParityRunOptions& options);

}  // namespace ranklab
