// Whether a run's sequences and heads can be split over context-parallel ranks. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Applies Tinytron's --sep N, which makes one group of ranks split both sequences (Ulysses: an all-to-all exchanges
// heads for positions) and experts. Sets cp, its exchange and balance, and, with experts, ep. Throws kInvalidArgument
// if another setting contradicts it.
void apply_sep(TrainConfig& config);

// The number of neighbours that exchange heads in a2a+p2p; 1 with any other exchange. Throws kInvalidArgument.
int head_exchange_ranks(const TrainConfig& config);

// Throws kInvalidArgument naming the sizes that do not divide and the nearest values that do.
void check_context(const RunPlan& plan);

}  // namespace ranklab
