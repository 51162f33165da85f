// Counts the parameters of the whole model, without padding; a parameter with copies on several ranks counts once.
// Thread rule: its rank's thread; collective with a pipeline.
#pragma once
#include <cstdint>

#include "core/comm/rank_context.h"
#include "core/nn/parameter.h"

namespace ranklab {

// `world` must be untraced.
int64_t count_parameters(const ParameterRegistry& registry, const RankContext& ctx, Communicator& world);

}  // namespace ranklab
