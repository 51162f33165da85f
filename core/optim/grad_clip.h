// Clipping by the global gradient norm (Pascanu et al. 2013). Each logical element counts once: parts of a sharded
// parameter are summed over its axis, a replicated parameter is counted by the first rank of the axis, pipeline stages
// are summed, and of a parameter's copies on several pipeline ranks the first counts; dp ranks hold the same gradients
// already, or each its own pieces, which are summed. Squares are added in fp64, so the norm does not depend on the
// layout beyond the rounding of the gradients. Cost: one pass over the gradients and one all_reduce of 8 bytes per axis
// larger than one. Thread rule: its rank's thread; every rank calls it.
#pragma once
#include <optional>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/nn/parameter.h"

namespace ranklab {

// What is shared out and given as the pieces that this rank owns (GradReducer::owned): the axis over whose group
// (dense parameters: dp or dp-shard, experts: edp or edp-shard).
struct OwnedPieces {
  std::optional<Axis> dense = std::nullopt, experts = std::nullopt;
};

// Scales every gradient by max_norm / (norm + 1e-6) when that is below 1 (as torch and Megatron do) and returns the
// norm before, the same bits on every rank. max_norm <= 0: only measures. REQUIRES: gradients are reduced.
double clip_grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, double max_norm,
                      OwnedPieces pieces = {});

}  // namespace ranklab
