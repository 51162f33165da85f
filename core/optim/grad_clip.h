// Clipping by the global gradient norm (Pascanu et al. 2013). Each logical element counts once: the shards of a
// parameter are summed over the axis that shards it, a replicated parameter is counted only by the first rank of the
// axis, pipeline stages are summed, and if several pipeline ranks hold copies of a parameter, only the first counts. dp
// ranks hold either the same gradients, or disjoint pieces, which are summed. Squares are added in fp64, so the norm
// depends on the layout only through the rounding of the gradients. Cost: one pass over the gradients and one
// all_reduce of 8 bytes per axis larger than one; on a device with kernels the host waits once, for the result. Thread
// rule: its rank's thread; every rank calls it.
#pragma once
#include <optional>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/nn/parameter.h"

namespace ranklab {

// For sharded gradients, when `parameters` are only the pieces that this rank owns (GradReducer::owned): the axis over
// whose group the gradients are sharded (dense parameters: dp or dp-shard, experts: edp or edp-shard).
struct OwnedPieces {
  std::optional<Axis> dense = std::nullopt, experts = std::nullopt;
};

// Sum of the squares in fp64, in one pass. On a device other than the CPU the caller waits for the result.
double sum_of_squares(const at::Tensor& tensor);
// Whether this rank counts a parameter, or a piece that it owns, in sums over the whole world, so that each logical
// element counts once.
bool counts_in_world(const Parameter& parameter, const RankContext& context, const OwnedPieces& pieces);

// The norm of all gradients, bitwise equal on every rank. REQUIRES: gradients are reduced.
double grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, OwnedPieces pieces = {});
// The factor that scales gradients of norm `norm` down to max_norm: max_norm / (norm + 1e-6) if that is below 1 (as in
// torch and Megatron), else 1. If max_norm <= 0: 1.
double clip_factor(double norm, double max_norm);
void scale_grads(const std::vector<Parameter*>& parameters, double factor);
// Charges the virtual clock for scale_grads() without running it, for devices whose update kernel scales the gradients
// in the same pass, which the CPU's does not.
void charge_scaling(const std::vector<Parameter*>& parameters, double factor);
// Whether any gradient in the world is infinite or NaN. Cost: one pass over the gradients, and one all_reduce of 4
// bytes. REQUIRES: gradients are reduced; every rank calls it.
bool any_overflow(const std::vector<Parameter*>& parameters, RankContext& context);
// Whether any gradient of this rank alone is infinite or NaN.
bool overflows_here(const std::vector<Parameter*>& parameters);

}  // namespace ranklab
