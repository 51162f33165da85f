// --watch: parity within a training run, every so many steps. One tensor of each module is sampled and ranks' copies
// are compared by hash (watch_sites.h); one layer is computed again by one rank (watch_layer.h). What is found are two
// rows of the table of sentinels, which warn or end the run. Cost: that of a step's sample, divided by the steps
// between two; `ranklab bench overhead` shows it. Thread rule: each rank's thread.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// For RuntimeComponents::parity_watch. `provider`: of the run's model.
MakeOwnFamily parity_watch(std::shared_ptr<ModelProvider> provider);
// The same parts, and this.
RuntimeComponents with_parity_watch(RuntimeComponents parts);

}  // namespace ranklab
