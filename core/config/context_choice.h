// Whether a run's sequences and heads can be split over context-parallel ranks. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Tinytron's --sep N: one group of ranks splits sequences (Ulysses: heads change places with positions) and experts.
// Sets cp, its exchange and balance, and with experts ep. Throws kInvalidArgument if another setting contradicts it.
void apply_sep(TrainConfig& config);

// How many neighbours exchange heads in a2a+p2p; 1 with any other exchange. Throws kInvalidArgument.
int head_exchange_ranks(const TrainConfig& config);

// Throws kInvalidArgument naming the numbers and the nearest that fit.
void check_context(const RunPlan& plan);

}  // namespace ranklab
