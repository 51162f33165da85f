// Dim 0 in the order of positions, or rank after rank as collectives deliver it. Views and copies, no index tensors.
// Internal to core/parallel/context. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/sequence_part.h"

namespace ranklab {

// x [S, ...]; both are each other's inverse.
at::Tensor rank_after_rank(const at::Tensor& x, int ranks, SequenceBalance balance);
at::Tensor in_position_order(const at::Tensor& x, int ranks, SequenceBalance balance);

}  // namespace ranklab
