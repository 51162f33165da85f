// Permutes dim 0 between the order of positions and the order in which collectives deliver it, rank after rank. Uses
// views and copies, no index tensors. Internal to core/parallel/context. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/sequence_part.h"

namespace ranklab {

// x [S, ...]; the two functions are each other's inverse.
at::Tensor rank_after_rank(const at::Tensor& x, int ranks, SequenceBalance balance);
at::Tensor in_position_order(const at::Tensor& x, int ranks, SequenceBalance balance);

}  // namespace ranklab
