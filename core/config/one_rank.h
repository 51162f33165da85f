// The same training on one rank: what a parallel run is compared with. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// The same global batches, in the microbatches of all data-parallel ranks: nothing is split, sharded, overlapped or
// recomputed, and no bug is injected. Throws kInvalidArgument where `config` is no valid run.
TrainConfig on_one_rank(TrainConfig config);

// What a parallel run is compared with: one rank, but where the balancing loss of experts is of the microbatches that
// all data-parallel ranks have at a time (global_aux_loss). One rank takes them one after another, which is another
// loss, so these data-parallel ranks stay; a single microbatch of 32 bits and more that drops no token is taken whole
// by one rank.
TrainConfig reference_layout(const TrainConfig& config);
// Whether the loss depends on how many data-parallel ranks there are.
bool loss_depends_on_dp(const TrainConfig& config);

}  // namespace ranklab
