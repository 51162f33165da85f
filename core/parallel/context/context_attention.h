// The softmax part of causal attention with the keys and values of other ranks' positions: ring attention (Liu et al.
// 2023, arXiv 2310.01889), where the next hop is under way while a block is attended to, or an all_gather of them
// (Llama 3, arXiv 2407.21783, section 3.3.2). The sums over blocks are in fp32 (fp64 for fp64), gradients of keys and
// values travel in it. Backward saves this rank's q, k, v, its output and log-sum-exp. Communication:
// context_exchange.h. Legend: S positions of a rank, B sequences, D head dimension. Thread rule: its rank's thread;
// every member of the group in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/softmax_attention.h"
#include "core/parallel/context/context_parallel.h"

namespace ranklab {

// Call once, before any forward, on every member: opens the ring's queues (Communicator::open_lanes).
void open_ring(const ContextParallel& cp);

// in.q [B, heads, S, D], in.k and in.v [B, groups, S, D], rotated (RoPE) -> [S, B, heads D]. `recompute`: backward
// computes the output again, exchange included, instead of saving it. REQUIRES: exchange is kP2p or kAllGather.
at::Tensor context_attention(const SoftmaxHeads& in, const ScoreRule& rule, const ContextParallel& cp, bool recompute);

}  // namespace ranklab
