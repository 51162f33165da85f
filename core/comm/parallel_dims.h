// How many ways each axis is split, checked once before any rank starts. Torch-free, pure arithmetic.
// World = pp x dp x cp x tp. Expert layers factor the same ranks of a pipeline stage as edp x ep x etp = dp x cp x tp
// (Megatron-Core's parallel folding, arXiv 2504.14960), so ep never multiplies the world.
#pragma once
#include <string>

#include "core/base/vocabulary.h"

namespace ranklab {

struct ParallelDims {
  int world = 1;
  int tp = 1;
  int cp = 1;
  int pp = 1;
  int dp = 0;  // 0: derived
  int ep = 1;
  int etp = 1;
  int edp = 0;       // 0: derived
  int cp_heads = 1;  // number of neighbours in a cp group that exchange heads; cp / cp_heads such groups form a ring
  // number of tp ranks that read the same key/value head: tp / heads if there are fewer heads than tp ranks
  int kv_copies = 1;
  int replicas = 1;  // HSDP: number of groups of dp (and of edp) ranks; each group shards all states
  std::string order =
      "tp-cp-ep-dp-pp";  // fastest-varying axis first (Megatron); must name tp, cp, ep, dp and pp once each

  // Fills dp and edp. Throws kInvalidArgument naming both numbers and the nearest legal values.
  ParallelDims resolved() const;
  int size(Axis axis) const;  // REQUIRES: a resolved object
};

// dp x cp x tp x pp: the number of ranks that these sizes need, where no world size is given. A size below 1 counts as
// 1, because resolved() refuses it by its own name. Saturates at the largest int, which resolved() then refuses as too
// many ranks.
int product_of_axes(const ParallelDims& dims);

}  // namespace ranklab
