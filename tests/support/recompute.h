// What a run keeps for the backward pass, as a change of its configuration.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

inline void recompute_selectively(TrainConfig& c) { c.recompute_granularity = "selective"; }
inline void recompute_all(TrainConfig& c) { c.recompute_granularity = "full"; }

}  // namespace ranklab
