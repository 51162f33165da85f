// The softmax part of causal attention with the keys and values of other ranks' positions: either ring attention (Liu
// et al. 2023, arXiv 2310.01889), where the next hop is in flight while a block is attended to, or an all_gather of
// keys and values (Llama 3, arXiv 2407.21783, section 3.3.2). Sums over blocks are in fp32 (fp64 for fp64), and
// gradients of keys and values are sent in that type. Backward saves this rank's q, k, v, its output and log-sum-exp.
// Communication: context_exchange.h. A sequence may consist of several documents whose queries attend only to their own
// keys (the block-diagonal mask of packed documents); a rank that has all positions computes this without other ranks.
// Legend: S positions of a rank, B sequences, D head dimension. Thread rule: its rank's thread; every member of the
// group in the same order.
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

// For each sequence of a microbatch, or once for all of them, the first positions of its documents, ascending and
// beginning with 0. A chunk of a document to which queries are restricted counts as a document here.
using DocumentStarts = std::vector<std::vector<int64_t>>;

struct ContextRule {
  ScoreRule scores = {};
  std::shared_ptr<const DocumentStarts> documents = nullptr;  // null: each sequence is one document
  std::shared_ptr<const ScoreDropout> dropout = nullptr;      // null: none
};

// Call once on every member, before any forward: opens the queues for ring messages (Communicator::open_lanes).
void open_ring(const ContextParallel& cp);

// in.q [B, heads, S, D], in.k and in.v [B, groups, S, D], rotated (RoPE) -> [S, B, heads D]. `recompute`: backward
// recomputes the output, including the exchange, instead of saving it. With a `maker`, in.k and in.v are what ranks
// send instead of keys and values; they may have any sizes, which must be the same on all members. REQUIRES: either cp
// is not active (this rank has all positions) or its exchange is kP2p or kAllGather; keys, values and queries have the
// same width.
at::Tensor context_attention(const SoftmaxHeads& in, const ContextRule& rule, const ContextParallel& cp, bool recompute,
                             KeyMaker maker = {});

}  // namespace ranklab
