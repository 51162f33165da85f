// Adapts the configuration to the world size that a launcher made. Torch-free. Thread rule: pure, except for the
// environment.
#pragma once
#include "cli/config/config_options.h"
#include "core/comm/process_env.h"

namespace ranklab {

// If each rank is a process, sets the world size to the number of ranks that the launcher started; sizes not set by the
// user follow settle_layout(). Throws kInvalidArgument if the configuration requests another size.
void adopt_world(TrainConfig& config, int size, const ConfigOptions& options);

// The settings of a training run whose ranks are simulated, in a process with this environment.
TrainConfig launched_config(const ConfigOptions& options, const ProcessEnv& env);

}  // namespace ranklab
