// The softmax part of causal attention with the keys and values of other ranks' positions: ring attention (Liu et al.
// 2023, arXiv 2310.01889), where the next hop is under way while a block is attended to, or an all_gather of them
// (Llama 3, arXiv 2407.21783, section 3.3.2). The sums over blocks are in fp32 (fp64 for fp64), gradients of keys and
// values travel in it. Backward saves this rank's q, k, v, its output and log-sum-exp. Communication:
// context_exchange.h. Sequences may be several documents each, whose queries attend to their own keys alone (the
// block-diagonal mask of packed documents); a rank that has all positions attends so without other ranks. Legend: S
// positions of a rank, B sequences, D head dimension. Thread rule: its rank's thread; every member of the group in the
// same order.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/nn/attention/score_dropout.h"
#include "core/nn/attention/softmax_attention.h"
#include "core/parallel/context/context_parallel.h"
#include "core/parallel/context/travelling_keys.h"

namespace ranklab {

// For each sequence of a microbatch, or once for all, the first positions of its documents, ascending, the first 0. A
// part of a document to which its queries keep is a document here.
using DocumentStarts = std::vector<std::vector<int64_t>>;

struct ContextRule {
  ScoreRule scores = {};
  std::shared_ptr<const DocumentStarts> documents = nullptr;  // null: each sequence is one document
  std::shared_ptr<const ScoreDropout> dropout = nullptr;      // null: none
};

// Call once, before any forward, on every member: opens the queues of the rings (Communicator::open_lanes).
void open_ring(const ContextParallel& cp);

// in.q [B, heads, S, D], in.k and in.v [B, groups, S, D], rotated (RoPE) -> [S, B, heads D]. `recompute`: backward
// computes the output again, exchange included, instead of saving it. With a `maker` in.k and in.v are what travels in
// the place of keys and values, of any sizes, the same on all members. REQUIRES: cp is not active (this rank has all
// positions), or its exchange is kP2p or kAllGather; keys, values and queries are of one width.
at::Tensor context_attention(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp, bool recompute,
                             KeyMaker maker = {});

}  // namespace ranklab
