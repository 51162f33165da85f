// A rank's assignments in a fixed number of slots per expert (Megatron-Core's --moe-pad-expert-input-to-capacity). The
// shapes of dispatch and experts then do not depend on the routing: the host does not wait for counts, and the pass can
// be recorded as a CUDA graph. Empty slots hold zeros and contribute nothing. Within an expert, assignments are in the
// order of tokens. Legend: T tokens of this rank, K experts per token, E experts, S slots in all, sorted by expert, H
// hidden. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/expert/routing.h"

namespace ranklab {

class ExpertSlots {
 public:
  // REQUIRES: routing.slots is as many as the most assignments of an expert, or more.
  explicit ExpertSlots(const Routing& routing);

  at::Tensor rows(const at::Tensor& tokens_TH) const;  // [S, H]
  // The experts' outputs [S, H] -> [T, H]: each token's weighted sum, slot by slot.
  at::Tensor weighted_sum(const at::Tensor& outputs_SH) const;

 private:
  Routing routing_;
  at::Tensor assignment_S_;  // token K + slot of the token; T K: the slot is empty
  at::Tensor place_M_;       // the slot of each assignment, M = T K; S: dropped
};

// Rows that are sorted by source, then expert, with equally many of each, sorted by expert, then source.
at::Tensor rows_by_expert(const at::Tensor& rows, int64_t sources, int64_t experts);
// The inverse.
at::Tensor rows_by_source(const at::Tensor& rows, int64_t sources, int64_t experts);

}  // namespace ranklab
