// The number of ranks that `generate` and `eval` run on: one replica of the layout. Torch-free. Thread rule: main
// thread.
#pragma once
#include "cli/config/config_options.h"

namespace ranklab {

// Sets the number of ranks that this process creates: several replicas only if the experts need them, or if --dp
// requests them; and, if nothing is trained, a batch that the replicas can divide. A world or batch that was given, or
// a launched world, stays as it is.
void choose_replica_world(const ConfigOptions& options, TrainConfig& config);
// For settings without a saved model: throws kInvalidArgument if no run can have them.
void check_replica(const ConfigOptions& options);

}  // namespace ranklab
