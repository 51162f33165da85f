// Exchanges heads for positions (DeepSpeed Ulysses, arXiv 2309.14509): from all heads of this rank's positions to this
// rank's heads of all positions, and back. Each direction is the other's adjoint. Cost: one all_to_all each, forward
// and backward. Legend: S positions of a rank, n ranks, B sequences, W width of a rank's heads. Thread rule: its rank's
// thread; every member of the group in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/attention.h"
#include "core/parallel/context/context_parallel.h"

namespace ranklab {

// [S, B, n W], rank 0's heads first -> [n S, B, W] in the order of positions.
at::Tensor heads_of_all_positions(const at::Tensor& x, const ContextParallel& cp);
// [n S, B, W] -> [S, B, n W]
at::Tensor positions_of_all_heads(const at::Tensor& x, const ContextParallel& cp);
// [S, B, W] on each rank -> [n S, B, W] in the order of positions; backward reduce-scatters.
at::Tensor gather_positions(const at::Tensor& x, const ContextParallel& cp);

// The attention shape with the heads of one rank. Throws kInvalidArgument unless n divides the number of heads, and n
// and the number of key/value heads divide one another: a key/value head that the queries of several ranks read is sent
// to each of them.
AttentionShape shape_of_one_rank(const AttentionShape& shape, const ContextParallel& cp);
// qkv [S, B, (heads + 2 groups) D], laid out as for causal_attention() -> the same layout with the heads of one rank,
// [n S, B, ...].
at::Tensor exchange_qkv(const at::Tensor& qkv, const AttentionShape& shape, const ContextParallel& cp);

}  // namespace ranklab
