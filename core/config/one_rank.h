// The same training on one rank: what a parallel run is compared with. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// The same global batches, in the microbatches of all data-parallel ranks: nothing is split, sharded, overlapped or
// recomputed, and no bug is injected. Throws kInvalidArgument where `config` is no valid run.
TrainConfig on_one_rank(TrainConfig config);

}  // namespace ranklab
