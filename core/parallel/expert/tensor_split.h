// Expert tensor parallelism: the ranks of an etp group each hold a shard of the same experts and have different tokens.
// Before the experts, every rank gathers the tokens of the group; afterwards the partial outputs are reduce-scattered
// (Megatron-Core's expert tensor parallelism, arXiv 2504.14960). Cost: 2 collectives of the group's rows, and an
// all_gather of counts unless they are padded. Does nothing in a group of one. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/parallel/expert/dispatcher.h"

namespace ranklab {

class EtpTokens {
 public:
  // The rows that arrived, sorted by local expert.
  EtpTokens(Communicator& etp, const ExpertTrip& trip);
  const at::Tensor& rows() const { return rows_; }                  // of the whole group, sorted by local expert
  const std::vector<int64_t>& counts() const { return counts_; }    // of the whole group
  at::Tensor own_outputs(const at::Tensor& partial_outputs) const;  // [N, H], for this rank's rows

 private:
  Communicator& etp_;
  at::Tensor rows_;
  std::vector<int64_t> counts_;
  std::vector<int64_t> rank_rows_;
  at::Tensor by_expert_;        // undefined: rows are sorted already, or equally many of each expert
  int64_t padded_experts_ = 0;  // equally many rows of each of these experts come from each rank; 0: not so
};

}  // namespace ranklab
