// Clipping by the global gradient norm (Pascanu et al. 2013). Each logical element counts once: parts of a sharded
// parameter are summed over its axis, a replicated parameter is counted by the first rank of the axis, pipeline stages
// are summed, and of a parameter's copies on several pipeline ranks the first counts; dp ranks hold the same gradients
// already, or each its own pieces, which are summed. Squares are added in fp64, so the norm does not depend on the
// layout beyond the rounding of the gradients. Cost: one pass over the gradients and one all_reduce of 8 bytes per axis
// larger than one; on a device with kernels the host waits once, for the result. Thread rule: its rank's thread; every
// rank calls it.
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

// The norm of all gradients, the same bits on every rank. REQUIRES: gradients are reduced.
double grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, OwnedPieces pieces = {});
// What brings gradients of this norm down to max_norm: max_norm / (norm + 1e-6) when that is below 1 (as torch and
// Megatron have it), else 1. max_norm <= 0: 1.
double clip_factor(double norm, double max_norm);
void scale_grads(const std::vector<Parameter*>& parameters, double factor);
// Whether a gradient of any rank of the world is infinite or NaN. Cost: one pass over the gradients, and one all_reduce
// of 4 bytes. REQUIRES: gradients are reduced; every rank calls it.
bool any_overflow(const std::vector<Parameter*>& parameters, RankContext& context);

// All of it: clips, and returns the norm before.
double clip_grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, double max_norm,
                      OwnedPieces pieces = {});

}  // namespace ranklab
