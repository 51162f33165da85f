// Expert capacity (GShard, arXiv 2006.16668; Megatron-Core's --moe-expert-capacity-factor): of a microbatch's N tokens
// an expert takes at most ceil(factor N K / E), but at least one. It keeps those with the largest weights; among equal
// weights (compared in half of their bits) it prefers earlier tokens. Positions that are split over tp and cp are
// counted together, so that every layout drops the same tokens. Cost: with split positions one all_gather of 2 K
// numbers per token on each axis. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/comm/communicator.h"
#include "core/parallel/context/context_parallel.h"
#include "core/spec/moe_config.h"

namespace ranklab {

int64_t expert_capacity(int64_t tokens, const MoeConfig& config);
struct PositionGroups;
// The most assignments that one expert keeps of a rank's T tokens: the whole capacity, or all T tokens.
int64_t most_kept(int64_t tokens_of_rank, const MoeConfig& config, const PositionGroups& groups);

// The groups over which the positions of a microbatch's sequences are split.
struct PositionGroups {
  // sequence parallelism: the ranks that divide the positions of one cp rank among themselves; null: none
  Communicator* sp = nullptr;
  ContextParallel cp = {};  // not active: context parallelism does not split positions
  int64_t sequences = 1;    // number of sequences in the microbatch
};

// Returns which assignments are kept: [T, K] (bool).
at::Tensor within_capacity(const at::Tensor& experts_TK, const at::Tensor& weights_TK, const MoeConfig& config,
                           const PositionGroups& groups);

}  // namespace ranklab
