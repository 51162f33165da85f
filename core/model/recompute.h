// Full activation recomputation (Chen et al. 2016, arXiv 1604.06174): layers run forward without keeping what their
// backward needs, only their input, one [S, B, H]; backward runs them forward again, now recorded by autograd, and at
// once backward. The second forward does what the first did: it draws the same dropout (named by element, nothing is
// stored), routes alike and takes part in the same collectives, so all ranks of a model must follow one policy; loads
// and losses of experts are booked by the first. Losses and gradients keep their bits. Cost: one more forward of these
// layers in their backward, 4/3 of the model's FLOPs when it is all of them; not counted as the model's
// (core/sim/recompute_scope.h). Where weight gradients are deferred (zero-bubble schedules) the forward runs again in
// B, and W finds what it needs kept from then on. Thread rule: its rank's thread.
#pragma once
#include <span>

#include "core/model/block.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

// The blocks one after another; computed again in backward, all as one piece, if asked and if gradients are recorded.
void forward_piece(std::span<const TransformerBlock> blocks, bool again, ResidualStream& stream, const Batch& batch,
                   double dropout_probability, const DropoutPlace& place);

// Which of its two forwards this thread runs.
enum class RecomputePass { kNone, kFirst, kAgain };
RecomputePass recompute_pass();

}  // namespace ranklab
