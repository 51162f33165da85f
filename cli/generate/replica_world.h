// How many ranks `generate` and `eval` run on: one replica of the layout. Torch-free. Thread rule: main thread.
#pragma once
#include "cli/config/config_options.h"

namespace ranklab {

// Sets the world of ranks that this process makes: replicas only for their experts, unless --dp asks for some; and
// where nothing is trained a batch that it divides. Leaves a world or a batch that was given, or a launched world, as
// it is.
void choose_replica_world(const ConfigOptions& options, TrainConfig& config);
// For settings that no saved model completes: throws kInvalidArgument where no run can have them.
void check_replica(const ConfigOptions& options);

}  // namespace ranklab
