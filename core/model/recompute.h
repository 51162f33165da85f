// Full activation recomputation (Chen et al. 2016, arXiv 1604.06174): layers run forward without keeping what their
// backward needs, only their input, one [S, B, H]; backward runs them forward again, now recorded by autograd, and at
// once backward. The second forward does what the first did: it draws the same dropout (named by element, nothing is
// stored), routes alike and takes part in the same collectives, so all ranks of a model must follow one policy; loads
// and losses of experts are booked by the first. Losses and gradients keep their bits. Cost: one more forward of these
// layers in their backward, 4/3 of the model's FLOPs when it is all of them; not counted as the model's
// (core/sim/recompute_scope.h). Where weight gradients are deferred (zero-bubble schedules) the forward runs again in
// B, and W finds what it needs kept from then on. Thread rule: its rank's thread.
#pragma once
#include <functional>

#include "core/model/forward_context.h"
#include "core/model/residual_stream.h"

namespace ranklab {

// Some layers one after another. What it refers to outlives the backward.
using Piece = std::function<void(ResidualStream&, const ForwardContext&)>;
// Runs the piece, and again in backward if gradients are recorded.
void recomputed(const Piece& piece, ResidualStream& stream, const ForwardContext& context);

}  // namespace ranklab
