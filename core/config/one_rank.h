// The same training on one rank, with which a parallel run is compared. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// The same global batches, divided into the microbatches of all data-parallel ranks. Nothing is split, sharded,
// overlapped or recomputed, and no bug is injected. Throws kInvalidArgument if `config` is not a valid run.
TrainConfig on_one_rank(TrainConfig config);

// The layout with which a parallel run is compared. This is one rank, except where the load-balancing loss of experts
// is computed over the microbatches that all data-parallel ranks process at the same time (global_aux_loss). One rank
// would process them one after another, which gives a different loss, so the data-parallel ranks are kept; but if there
// is a single microbatch in 32 bits or more, and no token is dropped, one rank takes it whole.
TrainConfig reference_layout(const TrainConfig& config);
// Whether the loss depends on the number of data-parallel ranks.
bool loss_depends_on_dp(const TrainConfig& config);

}  // namespace ranklab
