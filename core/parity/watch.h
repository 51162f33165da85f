// --watch: parity checks within a training run, one every given number of steps. One tensor of each module is sampled,
// and the ranks' copies are compared by hash (watch_sites.h); one layer is computed again by one rank (watch_layer.h).
// The findings are two rows of the table of sentinels, which warn or end the run. Cost: that of checking one step,
// divided by the number of steps between two checks; `ranklab bench overhead` shows it. Thread rule: each rank's
// thread.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// For RuntimeComponents::parity_watch. `provider`: the provider of the run's model.
MakeOwnFamily parity_watch(std::shared_ptr<ModelProvider> provider);
// Returns `parts` with the parity watch added.
RuntimeComponents with_parity_watch(RuntimeComponents parts);

}  // namespace ranklab
