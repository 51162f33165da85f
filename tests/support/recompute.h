// Changes of a configuration that determine what a run keeps for the backward pass.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

inline void recompute_selectively(TrainConfig& c) { c.recompute_granularity = "selective"; }
inline void recompute_all(TrainConfig& c) { c.recompute_granularity = "full"; }

}  // namespace ranklab
