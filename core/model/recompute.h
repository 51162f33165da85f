// Full activation recomputation (Chen et al. 2016, arXiv 1604.06174): the forward of these layers saves only their
// input, one [S, B, H]; backward runs the forward again, now recorded by autograd, followed directly by its backward.
// The second forward repeats the first: it has the same dropout masks (drawn per element, not stored), the same routing
// and the same collectives, so all ranks of a model must follow the same policy. Expert loads and losses are recorded
// only by the first forward. Losses and gradients are bitwise the same. Cost: one more forward of these layers, which
// makes 4/3 of the model's FLOPs if all layers are recomputed; it is not counted as model FLOPs
// (core/sim/recompute_scope.h). Where weight gradients are deferred (zero-bubble schedules), B recomputes the forward
// and saves what W needs. Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <vector>

#include "core/model/forward_context.h"
#include "core/model/residual_stream.h"

namespace ranklab {

// A run of consecutive layers. Everything it refers to must outlive the backward.
using Piece = std::function<void(ResidualStream&, const ForwardContext&)>;
// Runs the piece now, and once more in backward if gradients are being recorded. `shared_weights`: if other pieces of
// the same forward use its weights, too, all of its weights. Their gradients then leave the piece through the graph
// around it, in which autograd adds those of all pieces; a gradient reducer wants one gradient per weight and backward.
void recomputed(const Piece& piece, ResidualStream& stream, const ForwardContext& context,
                const std::vector<at::Tensor>& shared_weights = {});

}  // namespace ranklab
