// Expert tensor parallelism: the ranks of an etp group each hold a shard of the same experts and have different tokens.
// Before the experts, every rank gathers the tokens of the group; afterwards the partial outputs are reduce-scattered
// (Megatron-Core's expert tensor parallelism, arXiv 2504.14960). Cost: 2 collectives of the group's rows, and an
// all_gather of counts. Does nothing in a group of one. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

class EtpTokens {
 public:
  // rows [N, H] sorted by local expert, with counts per expert.
  EtpTokens(Communicator& etp, const at::Tensor& rows_NH, const std::vector<int64_t>& counts);
  const at::Tensor& rows() const { return rows_; }                  // of the whole group, sorted by local expert
  const std::vector<int64_t>& counts() const { return counts_; }    // of the whole group
  at::Tensor own_outputs(const at::Tensor& partial_outputs) const;  // [N, H], for this rank's rows

 private:
  Communicator& etp_;
  at::Tensor rows_;
  std::vector<int64_t> counts_;
  std::vector<int64_t> rank_rows_;
  at::Tensor by_expert_;
};

}  // namespace ranklab
